"""Taking a submission in: which of its notebooks counts, and when there is none."""

import json

import nbformat
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
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


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ("id", "cell_type", "source", "input", "metadata", "attachments", "outputs", "level")
CELLS = st.dictionaries(
    st.sampled_from(FIELDS),
    JSON
    | st.sampled_from(["f", "f-word", "code", "markdown", "raw", "heading", "def f():\n    return 1", "    return 2"]),
)
META = st.fixed_dictionaries(
    {"nbgrader": st.dictionaries(st.sampled_from(["grade_id", "points"]), JSON | st.just("f"))}
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "nbformat": JSON | st.sampled_from([3, 4, 5]),
        "nbformat_minor": JSON,
        "metadata": JSON,
        "cells": JSON | st.lists(CELLS | st.builds(lambda cell, meta: {**cell, "metadata": meta}, CELLS, META)),
        "worksheets": JSON | st.lists(st.fixed_dictionaries({"cells": st.lists(CELLS)}), max_size=2),
    },
)
FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@FUZZ
@example(data=b'{"cells":[{"cell_type":[]}]}')
@given(data=st.binary(max_size=200) | DOCUMENTS.map(lambda document: json.dumps(document).encode()))
def test_any_bytes_give_a_notebook_or_a_reason(released, data):
    try:
        intake = take_in(Submission({f"{NAME}.ipynb": data}), released, NAME)
    except SubmissionError as reason:
        assert str(reason).encode("utf-8")
        return
    nbformat.validate(intake.notebook)
    nbformat.writes(intake.notebook).encode("utf-8")
    names = [cell.metadata.nbgrader.grade_id for cell in intake.notebook.cells if "nbgrader" in cell.metadata]
    assert names == ["f", "f-word"]


ANY_CELLS = st.lists(
    st.sampled_from(["f", "f-word", "def f():\n    return 1", "x = 1", "    return 1", STUB]), max_size=8
)


@FUZZ
@given(sources=ANY_CELLS, marks=st.lists(st.sampled_from(["", "f", "f-word"]), min_size=8, max_size=8))
def test_nothing_that_was_written_is_lost(released, sources, marks):
    cells = [
        {"cell_type": "code", "source": source, "metadata": {"nbgrader": {"grade_id": mark}}}
        for source, mark in zip(sources, marks, strict=False)
    ]
    document = {"nbformat": 4, "cells": [*cells, {"cell_type": "code", "source": "marker", "id": "f-word"}]}
    intake = take_in(Submission({f"{NAME}.ipynb": json.dumps(document).encode()}), released, NAME)
    text = "\n".join(cell.source for cell in intake.notebook.cells)
    for source in sources:
        assert source in text or source == STUB, (source, text)
