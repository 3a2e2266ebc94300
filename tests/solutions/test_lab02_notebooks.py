"""Whole notebooks of the lab on formats, as they would be handed in, through `autograder check`."""

import ast
import json

import nbformat
import pytest

from autograder import cli
from autograder.checks import CHECK_ID

LAB = "lab02_formats"
FULL_MARKS = 60
WRONG = ("quantise_e2m1", "reciprocal")


@pytest.fixture
def check(course, tmp_path, capsys):
    """A function that hands a notebook to the command line and returns (exit status, outcome)."""

    def run(notebook):
        path = tmp_path / f"{LAB}.ipynb"
        nbformat.write(notebook, path)
        status = cli.run(["check", str(path), "--lab", LAB, "--json", "--course", str(course.root)])
        return status, json.loads(capsys.readouterr().out)

    return run


def lost(outcome):
    return {result["id"]: result["message"] for result in outcome["checks"] if result["points"] < result["max_points"]}


@pytest.mark.sandbox
def test_the_untouched_release_scores_nothing(check, lab):
    status, outcome = check(lab.released)
    assert (status, outcome["state"], outcome["score"], outcome["max_score"]) == (1, "graded", 0, FULL_MARKS)
    assert {result["status"] for result in outcome["checks"]} <= {"failed", "skipped"}
    assert outcome["notes"] == []


@pytest.mark.sandbox
def test_the_solved_lab_scores_all_within_its_budget(check, lab, solved):
    status, outcome = check(solved)
    assert lost(outcome) == {}
    assert (status, outcome["score"]) == (0, FULL_MARKS)
    assert outcome["seconds"] < lab.header.solved_seconds
    assert lab.header.limits.memory_bytes <= 2 << 30


@pytest.mark.sandbox
@pytest.mark.parametrize("choice", [0, -1])
def test_right_answers_written_differently_score_all_together(check, solved, with_answers, answers, choice):
    right = [answer for answer in answers if answer.is_right]
    tasks = dict.fromkeys(answer.task for answer in right)
    chosen = {task: [answer.source for answer in right if answer.task == task][choice] for task in tasks}
    _, outcome = check(with_answers(solved, chosen))
    assert lost(outcome) == {}


@pytest.mark.sandbox
def test_one_wrong_answer_costs_the_points_of_its_checks(check, lab, solved, with_answers, answers):
    (wrong,) = [answer for answer in answers if (answer.task, answer.name) == WRONG]
    status, outcome = check(with_answers(solved, {wrong.task: wrong.source}))
    assert set(lost(outcome)) == set(wrong.loses), lost(outcome)
    cost = sum(lab.checks[id].points for id in wrong.loses)
    assert (status, outcome["score"]) == (1, FULL_MARKS - cost)


def test_a_check_cell_says_what_the_check_says(lab):
    cells = {cell.id: cell.source for cell in lab.released.cells if cell.id in lab.checks}
    said = {id: ast.get_docstring(ast.parse(source)) for id, source in cells.items()}
    assert said == {check.id: check.title for check in lab.checks}


def test_every_check_has_a_hint_and_names_a_misconception(lab):
    assert [check.id for check in lab.checks if not check.hint or not check.catches] == []
    assert [check.id for check in lab.checks if not CHECK_ID.fullmatch(check.id)] == []
