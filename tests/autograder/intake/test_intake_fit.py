"""Fitting cells into the release: each way of breaking a notebook, and which definition is in force after the repair.

The oracle runs the repaired notebook as Python does, binds each task's function where its check
stands, and calls it when everything has run: what the judge does, without a judge.
"""

import copy
import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.intake.fit import answered, fit
from autograder.intake.parse import parse_notebook

F_STUB = 'def f():\n    """Return a word."""\n    raise NotImplementedError("f: replace this line")'
G_STUB = 'def g():\n    """Return a word."""\n    raise NotImplementedError("g: replace this line")'
F_MINE, G_MINE = 'def f():\n    return "f mine"', 'def g():\n    return "g mine"'


def settings(name, **given):
    base = {"grade_id": name, "grade": False, "solution": False, "task": False, "locked": False, "schema_version": 3}
    return {"nbgrader": base | given}


def locked_text(source, name, **given):
    return new_markdown_cell(source, id=name, metadata=settings(name, locked=True, **given))


def answer(source, name):
    return new_code_cell(source, id=name, metadata=settings(name, solution=True))


def check(source, name):
    return new_code_cell(source, id=name, metadata=settings(name, grade=True, locked=True, points=1))


@pytest.fixture
def released():
    """A release of two tasks and a question, with every kind of cell."""
    return new_notebook(
        cells=[
            new_markdown_cell("# Lab", id="title"),
            new_code_cell("import math", id="imports"),
            answer(F_STUB, "f"),
            new_code_cell("show = 1", id="f-run-1"),
            check('"""A word."""\nassert f()', "f-word"),
            answer(G_STUB, "g"),
            check('"""A word."""\nassert g()', "g-word"),
            locked_text("Why?", "explain-why", task=True, points=2),
            new_markdown_cell("*Your answer.*", id="explain-why-answer"),
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )


@pytest.fixture
def work(released):
    """What a student hands in: the release with both answers."""
    notebook = copy.deepcopy(released)
    cell_of(notebook, "f").source, cell_of(notebook, "g").source = F_MINE, G_MINE
    return notebook


def cell_of(notebook, cell_id):
    return next(cell for cell in notebook.cells if cell.id == cell_id)


def at(notebook, cell_id):
    return notebook.cells.index(cell_of(notebook, cell_id))


def refit(notebook, released):
    """Return the repaired notebook and the notes, by way of bytes."""
    cells, _ = parse_notebook(json.dumps(notebook).encode())
    fitted, notes = fit(cells, released)
    nbformat.validate(fitted)
    return fitted, " | ".join(notes)


def in_force(notebook):
    """Return what each task gives at the end, bound where its check stands: (f, g)."""
    names, bound = {}, {}
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if name.endswith("-word"):
            bound[name[0]] = names.get(name[0])
        elif cell.cell_type == "code":
            try:
                exec(cell.source, names)
            except Exception:
                continue
    return tuple(result_of(bound["f"])) + tuple(result_of(bound["g"]))


def result_of(function):
    try:
        yield function()
    except NotImplementedError:
        yield "stub"
    except Exception as error:
        yield type(error).__name__


def graded_ids(notebook):
    return [c.metadata.nbgrader.grade_id for c in notebook.cells if "nbgrader" in c.metadata]


def strip_everything(notebook):
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell.id = {}, f"x{number}"


def test_an_untouched_release_comes_back_as_it_is(released):
    fitted, notes = refit(released, released)
    assert fitted.cells == released.cells and notes == ""
    assert in_force(fitted) == ("stub", "stub")


def test_a_plain_answer_is_taken_without_a_note(work, released):
    fitted, notes = refit(work, released)
    assert fitted.cells == work.cells and notes == ""
    assert in_force(fitted) == ("f mine", "g mine")


def insert(notebook, index, *cells):
    notebook.cells[index:index] = [new_code_cell(source) for source in cells]


def delete(notebook, *cell_ids):
    notebook.cells = [cell for cell in notebook.cells if cell.id not in cell_ids]


def copy_cell(notebook, cell_id, index, source=None, keep_id=False):
    twin = copy.deepcopy(cell_of(notebook, cell_id))
    twin.id = twin.id if keep_id else f"{twin.id}-copy"
    twin.source = twin.source if source is None else source
    notebook.cells.insert(index, twin)


def moved_into_a_free_cell(notebook):
    cell_of(notebook, "f").source = F_STUB
    insert(notebook, at(notebook, "f") + 1, F_MINE)


def moved_into_a_free_cell_before(notebook):
    cell_of(notebook, "f").source = F_STUB
    insert(notebook, at(notebook, "f"), F_MINE)


def moved_to_the_end(notebook):
    cell_of(notebook, "f").source = F_STUB
    insert(notebook, len(notebook.cells), F_MINE)


def cut_and_pasted_to_the_end(notebook):
    notebook.cells.append(notebook.cells.pop(at(notebook, "f")))


def duplicated_and_worked_in_the_copy(notebook):
    copy_cell(notebook, "f", at(notebook, "f") + 1)
    cell_of(notebook, "f").source = F_STUB


def duplicated_and_kept_the_stub_below(notebook):
    copy_cell(notebook, "f", at(notebook, "f") + 1, F_STUB)


def duplicated_with_the_same_id(notebook):
    copy_cell(notebook, "f", at(notebook, "f") + 1, F_STUB, keep_id=True)


def improved_in_a_copy_above_the_checks(notebook):
    cell_of(notebook, "f").source = 'def f():\n    return "draft"'
    copy_cell(notebook, "f", at(notebook, "f") + 1, F_MINE)


def played_with_after_the_checks(notebook):
    insert(notebook, len(notebook.cells), 'def f():\n    return "experiment"')


def split_in_the_body(notebook):
    cell_of(notebook, "f").source = "def f():\n    x = 1"
    copy_cell(notebook, "f", at(notebook, "f") + 1, '    return "f mine"')


def split_in_three_without_identity(notebook):
    cell_of(notebook, "f").source = "def f():\n    x = 1"
    insert(notebook, at(notebook, "f") + 1, '    if x:\n        return "f mine"', "    return x")


def split_inside_brackets(notebook):
    cell_of(notebook, "f").source = 'def f():\n    return ("f "'
    copy_cell(notebook, "f", at(notebook, "f") + 1, '"mine")')


def split_between_helper_and_function(notebook):
    cell_of(notebook, "f").source = 'WORD = "f mine"'
    copy_cell(notebook, "f", at(notebook, "f") + 1, "def f(word=WORD):\n    return word")


def helper_in_a_cell_before(notebook):
    cell_of(notebook, "f").source = "def f():\n    return help_me()"
    insert(notebook, at(notebook, "f"), 'def help_me():\n    return "f mine"')


def helper_in_a_cell_after(notebook):
    cell_of(notebook, "f").source = "def f():\n    return help_me()"
    insert(notebook, at(notebook, "f") + 1, 'def help_me():\n    return "f mine"')


def helper_before_the_moved_answer(notebook):
    cell_of(notebook, "f").source = F_STUB
    insert(notebook, at(notebook, "f") + 1, 'WORD = "f mine"', "def f(word=WORD):\n    return word")


def assigned_from_another_name(notebook):
    cell_of(notebook, "f").source = F_STUB
    insert(notebook, at(notebook, "f") + 1, 'def mine():\n    return "f mine"\nf = mine')


def both_answers_in_the_first_cell(notebook):
    cell_of(notebook, "f").source = f"{F_MINE}\n\n{G_MINE}"
    cell_of(notebook, "g").source = G_STUB


def both_answers_in_the_second_cell(notebook):
    cell_of(notebook, "g").source = f"{F_MINE}\n\n{G_MINE}"
    cell_of(notebook, "f").source = F_STUB


def answer_turned_into_markdown(notebook):
    notebook.cells[at(notebook, "f")] = new_markdown_cell(F_MINE, id="f", metadata=cell_of(notebook, "f").metadata)


def answer_turned_raw(notebook):
    cell = cell_of(notebook, "f")
    notebook.cells[at(notebook, "f")] = nbformat.v4.new_raw_cell(F_MINE, id="f", metadata=cell.metadata)


def draft_turned_raw_and_answered_below(notebook):
    answer_turned_raw(notebook)
    cell_of(notebook, "f").source = 'def f():\n    return "draft"'
    insert(notebook, at(notebook, "f") + 1, F_MINE)


def ids_renamed(notebook):
    for number, cell in enumerate(notebook.cells):
        cell.id = f"x{number}"


def grade_ids_renamed(notebook):
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.grade_id += "2"


def opened_elsewhere_and_moved(notebook):
    strip_everything(notebook)
    notebook.cells.reverse()


def stub_left_after_stripping(notebook):
    moved_into_a_free_cell_before(notebook)
    strip_everything(notebook)


def check_deleted(notebook):
    delete(notebook, "f-word", "g-word")


def check_emptied(notebook):
    cell_of(notebook, "f-word").source = ""


def check_retyped(notebook):
    cell = cell_of(notebook, "f-word")
    notebook.cells[at(notebook, "f-word")] = new_markdown_cell(cell.source, id=cell.id, metadata=cell.metadata)


def check_skipped_by_a_tag(notebook):
    cell_of(notebook, "f-word").metadata.tags = ["skip-execution"]


def check_repointed(notebook):
    cell_of(notebook, "f-word").metadata.nbgrader.update(grade_id="g-word", points=99)


def check_unlocked_and_made_an_answer(notebook):
    cell_of(notebook, "f-word").metadata.nbgrader.update(locked=False, solution=True, grade=False)


def check_duplicated(notebook):
    copy_cell(notebook, "f-word", 0)


def check_moved_to_the_top(notebook):
    notebook.cells.insert(0, notebook.cells.pop(at(notebook, "f-word")))


def answer_written_into_the_check(notebook):
    cell_of(notebook, "f-word").source = f"{F_MINE}\n\n{cell_of(notebook, 'f-word').source}"
    cell_of(notebook, "f").source = F_STUB


def answer_deleted_and_written_below(notebook):
    delete(notebook, "f")
    insert(notebook, at(notebook, "f-run-1") + 1, F_MINE)


def imports_deleted(notebook):
    delete(notebook, "imports")


def indented_by_accident_below(notebook):
    insert(notebook, at(notebook, "f") + 1, "  f()")


REPAIRS = [
    (moved_into_a_free_cell, "another cell than its own"),
    (moved_into_a_free_cell_before, "another cell than its own"),
    (moved_to_the_end, "after its checks"),
    (cut_and_pasted_to_the_end, "after its checks"),
    (duplicated_and_worked_in_the_copy, ""),
    (duplicated_and_kept_the_stub_below, ""),
    (duplicated_with_the_same_id, ""),
    (improved_in_a_copy_above_the_checks, "2 cells define it"),
    (played_with_after_the_checks, "2 cells define it"),
    (split_in_the_body, "was split"),
    (split_in_three_without_identity, "was split"),
    (split_inside_brackets, "was split"),
    (split_between_helper_and_function, ""),
    (helper_in_a_cell_before, ""),
    (helper_in_a_cell_after, ""),
    (helper_before_the_moved_answer, "another cell"),
    (assigned_from_another_name, "another cell"),
    (both_answers_in_the_first_cell, "another cell"),
    (both_answers_in_the_second_cell, "another cell"),
    (answer_turned_into_markdown, "turned into markdown"),
    (answer_turned_raw, "turned into raw"),
    (draft_turned_raw_and_answered_below, "another cell"),
    (ids_renamed, ""),
    (grade_ids_renamed, "metadata was changed"),
    (strip_everything, "found by the name it defines"),
    (opened_elsewhere_and_moved, "moved"),
    (stub_left_after_stripping, "another cell than its own"),
    (check_deleted, "f-word, g-word: was deleted, restored"),
    (check_emptied, "f-word: was emptied, restored"),
    (check_retyped, "f-word: its type was changed, restored"),
    (check_skipped_by_a_tag, ""),
    (check_repointed, "f-word: was deleted, restored"),
    (check_unlocked_and_made_an_answer, ""),
    (check_duplicated, "2 copies"),
    (check_moved_to_the_top, "moved"),
    (answer_written_into_the_check, "text was changed, restored"),
    (answer_deleted_and_written_below, "found by the name"),
    (imports_deleted, ""),
    (indented_by_accident_below, ""),
]


@pytest.mark.parametrize(("spoil", "note"), REPAIRS, ids=[spoil.__name__ for spoil, _ in REPAIRS])
def test_a_broken_notebook_is_graded_as_it_was_meant(work, released, spoil, note):
    spoil(work)
    fitted, notes = refit(work, released)
    assert in_force(fitted) == ("f mine", "g mine")
    assert note in notes
    assert bool(notes) >= bool(note)


@pytest.mark.parametrize(("spoil", "note"), REPAIRS, ids=[spoil.__name__ for spoil, _ in REPAIRS])
def test_a_repaired_notebook_has_every_released_cell_once(work, released, spoil, note):
    spoil(work)
    fitted, _ = refit(work, released)
    assert graded_ids(fitted) == graded_ids(released)
    for cell in released.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name and name not in ("f", "g"):
            found = next(c for c in fitted.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)
            assert found == cell
    assert len({cell.id for cell in fitted.cells}) == len(fitted.cells)
    assert fitted.metadata == released.metadata


@pytest.mark.parametrize(("spoil", "note"), REPAIRS, ids=[spoil.__name__ for spoil, _ in REPAIRS])
def test_fitting_again_changes_nothing(work, released, spoil, note):
    spoil(work)
    once, _ = refit(work, released)
    assert in_force(refit(once, released)[0]) == in_force(once)


def test_two_answers_swapped_by_their_ids_are_told_by_grade_id(work, released):
    cell_of(work, "f").id, cell_of(work, "g").id = "g", "f"
    assert in_force(refit(work, released)[0]) == ("f mine", "g mine")


def test_an_emptied_answer_scores_as_a_stub(work, released):
    cell_of(work, "f").source = ""
    fitted, notes = refit(work, released)
    assert in_force(fitted) == ("stub", "g mine") and "f: no answer found" in notes


def test_a_deleted_answer_scores_as_a_stub(work, released):
    delete(work, "f")
    fitted, notes = refit(work, released)
    assert in_force(fitted) == ("stub", "g mine") and "f: no answer found" in notes


def test_an_answer_with_a_typing_error_is_kept_as_it_is(work, released):
    cell_of(work, "f").source = "def ff():\n    return 1"
    fitted, _ = refit(work, released)
    assert cell_of(fitted, "f").source == "def ff():\n    return 1"


def test_an_answer_is_found_by_its_place(work, released):
    strip_everything(work)
    work.cells[2].source = "def F():\n    return 1"
    fitted, notes = refit(work, released)
    assert cell_of(fitted, "f").source == "def F():\n    return 1" and "f: its cell was found by its place" in notes


def test_what_is_written_under_a_question_is_kept(work, released):
    cell_of(work, "explain-why-answer").source = "Because."
    assert cell_of(refit(work, released)[0], "explain-why-answer").source == "Because."


@pytest.mark.parametrize("spoil", [strip_everything, ids_renamed])
def test_what_is_written_under_a_question_survives_other_editors(work, released, spoil):
    cell_of(work, "explain-why-answer").source = "Because."
    spoil(work)
    assert cell_of(refit(work, released)[0], "explain-why-answer").source == "Because."


def test_an_answer_written_into_the_question_is_kept_beside_it(work, released):
    cell_of(work, "explain-why").source = "Why?\n\nBecause."
    fitted, _ = refit(work, released)
    assert cell_of(fitted, "explain-why").source == "Why?"
    assert any("Because." in cell.source for cell in fitted.cells)


def test_more_cells_under_a_question_stay_there(work, released):
    work.cells.append(new_markdown_cell("And more."))
    work.cells.append(new_code_cell("1 + 1"))
    assert [cell.source for cell in refit(work, released)[0].cells[-2:]] == ["And more.", "1 + 1"]


def test_an_emptied_given_cell_is_restored(work, released):
    cell_of(work, "imports").source = " "
    assert cell_of(refit(work, released)[0], "imports").source == "import math"


def test_a_changed_given_cell_is_the_students(work, released):
    cell_of(work, "f-run-1").source = "show = 2"
    assert cell_of(refit(work, released)[0], "f-run-1").source == "show = 2"


def test_code_written_into_a_check_runs_before_it(work, released):
    cell_of(work, "f-word").source = 'WORD = "f mine"'
    cell_of(work, "f").source = "def f():\n    return WORD"
    assert in_force(refit(work, released)[0])[0] == "f mine"


def test_pictures_under_a_question_are_kept(work, released):
    cell_of(work, "explain-why-answer").source = "![a](attachment:a.png)"
    cell_of(work, "explain-why-answer")["attachments"] = {"a.png": {"image/png": "AAAA"}}
    fitted, _ = refit(work, released)
    assert cell_of(fitted, "explain-why-answer").attachments == {"a.png": {"image/png": "AAAA"}}


def test_metadata_of_the_student_goes_nowhere(work, released):
    work.metadata = {"kernelspec": {"name": "evil", "display_name": "Evil"}, "widgets": {}}
    work.cells.append(new_code_cell("1", metadata={"nbgrader": settings("bonus", grade=True, points=99)["nbgrader"]}))
    fitted, _ = refit(work, released)
    assert fitted.metadata == released.metadata
    assert graded_ids(fitted) == graded_ids(released)


def test_outputs_of_the_student_go_nowhere(work, released):
    cell_of(work, "f-word").outputs = [nbformat.v4.new_output("stream", text="passed")]
    assert all(not cell.get("outputs") for cell in refit(work, released)[0].cells)


@pytest.mark.parametrize(("spoil", "n_answers"), [(lambda nb: None, 2), (strip_everything, 2), (moved_to_the_end, 2)])
def test_answered_counts_answers(work, released, spoil, n_answers):
    spoil(work)
    cells, _ = parse_notebook(json.dumps(work).encode())
    assert answered(cells, released) == n_answers


def test_a_stub_is_no_answer_whatever_its_docstring_says(released):
    work = copy.deepcopy(released)
    cell_of(work, "f").source = F_STUB.replace("a word", "some word") + "\n    # how?"
    cells, _ = parse_notebook(json.dumps(work).encode())
    assert answered(cells, released) == 0


@pytest.mark.parametrize(
    ("sources", "expected"),
    [(["x = 1"], False), ([], False), (["import math"], False), ([F_STUB], True), ([F_MINE], True)],
)
def test_a_notebook_of_this_lab_is_recognised(released, sources, expected):
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    cells, _ = parse_notebook(json.dumps(notebook).encode())
    assert (answered(cells, released) is not None) is expected


def test_a_notebook_of_nothing_but_pieces_is_not_put_together(work, released):
    for _ in range(30):
        copy_cell(work, "f", at(work, "f") + 1, "    return 1")
    fitted, notes = refit(work, released)
    assert in_force(fitted)[0] == "f mine" and "split" not in notes


def test_a_cell_that_no_kernel_would_run_defines_nothing(work, released):
    insert(work, at(work, "f") + 1, 'def f():\n    return "large"\n#' + "x" * (1 << 20))
    assert in_force(refit(work, released)[0])[0] == "large"
    assert "2 cells define it" not in refit(work, released)[1]
