"""A new lab as the command writes it: it builds, it grades, and its planted answers lose what they should."""

import ast
import secrets

import jupytext
import nbformat
import pytest

from autograder.authoring.build import build
from autograder.authoring.new_lab import new_lab
from autograder.errors import UsageError
from autograder.lab import load_lab

NAME = "lab08_mean_squares"


def test_a_new_lab_has_three_files_and_builds(small_course):
    written = new_lab(small_course, NAME)
    assert [path.relative_to(small_course.solutions).as_posix() for path in written] == [
        f"{NAME}.py", f"checks/{NAME}.py", f"planted/{NAME}.py",
    ]  # fmt: skip
    assert len(build(small_course, [NAME])) == 2
    lab = load_lab(small_course, NAME)
    assert lab.header.title == "Mean squares"
    assert sum(check.points for check in lab.checks) == 3


@pytest.mark.parametrize("name", ["lab8_x", "lab08", "Lab08_x", "lab08_X", "../lab08_x", "lab08_x.py", ""])
def test_other_names_are_refused(small_course, name):
    with pytest.raises(UsageError, match="expected labNN_noun"):
        new_lab(small_course, name)


def test_a_number_that_is_taken_is_refused(small_course):
    with pytest.raises(UsageError, match="a number that no lab has, got 'lab01_other' beside 'lab01_halves'"):
        new_lab(small_course, "lab01_other")


def test_files_that_are_there_are_kept(small_course):
    path = small_course.solutions / "planted" / f"{NAME}.py"
    path.parent.mkdir()
    path.write_text("mine")
    with pytest.raises(UsageError, match="a lab without files"):
        new_lab(small_course, NAME)
    assert path.read_text() == "mine"
    assert not (small_course.solutions / f"{NAME}.py").exists()


@pytest.mark.sandbox
def test_a_new_lab_grades_as_its_planted_answers_say(small_course, project):
    new_lab(small_course, NAME)
    build(small_course, [NAME])
    planted = jupytext.read(small_course.solutions / "planted" / f"{NAME}.py", fmt="py:percent").cells
    expected = {cell.metadata["name"]: set(cell.metadata.get("loses", "").split()) for cell in planted[1:]}
    answers = {cell.metadata["name"]: cell.source for cell in planted[1:]}
    assert {name: lost_checks(small_course, project, text) for name, text in answers.items()} == expected


def lost_checks(course, project, answer: str) -> set[str]:
    """Return the checks of the solved notebook, one answer replaced, that do not pass in the judge."""
    from autograder.course import Course
    from autograder.judging.environments import environment_for
    from autograder.judging.judge import judge

    lab = load_lab(course, NAME)
    notebook = nbformat.read(course.solutions / NAME / f"{NAME}.ipynb", 4)
    task = next(node.name for node in ast.parse(answer).body if isinstance(node, ast.FunctionDef))
    next(cell for cell in notebook.cells if cell.id == task).source = answer
    prefix = environment_for(Course(course.root, project), lab.header.packages)
    judged = judge(notebook, lab, {}, lambda check: secrets.token_bytes(32), prefix=prefix)
    return {result.id for result in judged.results if result.status != "passed"}
