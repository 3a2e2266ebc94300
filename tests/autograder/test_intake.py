"""Taking a submission in: which of its notebooks counts, and when there is none."""

import json

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.errors import SubmissionError
from autograder.intake import Submission, take_in

STUB = "def f():\n    raise NotImplementedError"
NAME = "lab01_words"


@pytest.fixture
def released():
    """A release of one task."""
    base = {"grade": False, "solution": False, "task": False, "locked": False, "schema_version": 3}
    answer = {"nbgrader": base | {"grade_id": "f", "solution": True}}
    check = {"nbgrader": base | {"grade_id": "f-word", "grade": True, "locked": True, "points": 1}}
    cells = [new_code_cell(STUB, id="f", metadata=answer), new_code_cell("f()", id="f-word", metadata=check)]
    return new_notebook(cells=cells)


def handed_in(released, word=None):
    """Return the bytes of the release with an answer that returns a word."""
    document = json.loads(json.dumps(released))
    if word:
        document["cells"][0]["source"] = f"def f():\n    return {word!r}"
    return json.dumps(document).encode()


def answer_in(intake):
    return intake.notebook.cells[0].source


def test_the_named_notebook_counts(released):
    files = {f"{NAME}.ipynb": handed_in(released, "named"), "notes.ipynb": handed_in(released, "other")}
    intake = take_in(Submission(files), released, NAME)
    assert "named" in answer_in(intake) and "left out: 'notes.ipynb'" in intake.notes[0]


@pytest.mark.parametrize("name", [f"{NAME} (1).ipynb", "Copy of lab.ipynb", f"x/{NAME}.ipynb", "LAB.IPYNB"])
def test_a_renamed_notebook_is_taken(released, name):
    intake = take_in(Submission({name: handed_in(released, "renamed")}), released, NAME)
    assert "renamed" in answer_in(intake)
    assert any("taken" in note for note in intake.notes) == (not name.endswith(f"/{NAME}.ipynb"))


def test_a_copy_with_answers_counts_before_the_untouched_release(released):
    files = {f"{NAME}.ipynb": handed_in(released), f"{NAME}-Copy1.ipynb": handed_in(released, "copy")}
    intake = take_in(Submission(files), released, NAME)
    assert "copy" in answer_in(intake) and any("expected lab01_words.ipynb: taken" in note for note in intake.notes)


def test_a_broken_notebook_beside_a_good_one_costs_nothing(released):
    files = {f"{NAME}.ipynb": b"{", "good.ipynb": handed_in(released, "good")}
    intake = take_in(Submission(files), released, NAME)
    assert "good" in answer_in(intake) and any("expected JSON" in note for note in intake.notes)


def test_files_go_with_the_notebook_by_their_place_beside_it(released):
    files = {
        f"work/{NAME}.ipynb": handed_in(released, "x"),
        "work/helper.py": b"1",
        "work/d/data.txt": b"2",
        "top.txt": b"",
    }
    assert take_in(Submission(files), released, NAME).files == {"helper.py": b"1", "d/data.txt": b"2", "top.txt": b""}


def test_notes_of_the_folder_come_first(released):
    submission = Submission({f"{NAME}.ipynb": handed_in(released, "x")}, ("'a': left out",))
    assert take_in(submission, released, NAME).notes == ["'a': left out"]


def other_lab():
    return json.dumps(new_notebook(cells=[new_markdown_cell("# Lab 9"), new_code_cell("1")])).encode()


@pytest.mark.parametrize(
    ("files", "notes", "message"),
    [
        ({}, (), "no notebook: expected lab01_words.ipynb, got 0 other files"),
        ({"answer.pdf": b"1", "x.py": b""}, (), "got 2 other files"),
        ({}, ("'lab01_words.ipynb': left out, it is a link, not a plain file",), "it is a link"),
        ({f"{NAME}.ipynb": b""}, (), "the file is empty"),
        ({f"{NAME}.ipynb": b"<html>"}, (), "expected JSON"),
        ({f"{NAME}.ipynb": other_lab()}, (), "another lab's notebook"),
        ({f"{NAME}.ipynb": b"", "b.ipynb": b"["}, (), "empty; 'lab01_words|expected JSON"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_holds_no_notebook_is_not_gradable(released, files, notes, message):
    with pytest.raises(SubmissionError, match=message):
        take_in(Submission(files, notes), released, NAME)
