"""Whole notebooks of every lab, as they would be handed in, through `autograder check`."""

import ast
import json

import nbformat
import pytest

from autograder import cli
from autograder.checks import CHECK_ID


@pytest.fixture
def check(bench, tmp_path, capsys):
    """A function that hands a notebook to the command line and returns (exit status, outcome)."""

    def run(notebook):
        path = tmp_path / f"{bench.name}.ipynb"
        nbformat.write(notebook, path)
        status = cli.run(["check", str(path), "--lab", bench.name, "--json", "--course", str(bench.course.root)])
        return status, json.loads(capsys.readouterr().out)

    return run


def lost(outcome):
    return {result["id"]: result["message"] for result in outcome["checks"] if result["points"] < result["max_points"]}


@pytest.mark.sandbox
def test_the_untouched_release_scores_nothing(bench, check):
    status, outcome = check(bench.lab.released)
    assert (status, outcome["state"], outcome["score"], outcome["max_score"]) == (1, "graded", 0, bench.full_marks)
    assert {result["status"] for result in outcome["checks"]} <= {"failed", "skipped"}
    assert outcome["notes"] == []


@pytest.mark.sandbox
def test_the_solved_lab_scores_all_within_its_budget(bench, check):
    status, outcome = check(bench.solved)
    assert lost(outcome) == {}
    assert (status, outcome["score"]) == (0, bench.full_marks)
    assert outcome["seconds"] < bench.lab.header.solved_seconds
    assert bench.lab.header.limits.memory_bytes <= 2 << 30


@pytest.mark.sandbox
@pytest.mark.parametrize("choice", [0, -1])
def test_right_answers_written_differently_score_all_together(bench, check, choice):
    right = [answer for answer in bench.answers if answer.is_right]
    tasks = dict.fromkeys(answer.task for answer in right)
    chosen = {task: [answer.source for answer in right if answer.task == task][choice] for task in tasks}
    _, outcome = check(bench.with_answers(bench.solved, chosen))
    assert lost(outcome) == {}


@pytest.mark.sandbox
def test_one_wrong_answer_costs_the_points_of_its_checks(bench, check):
    wrong_ones = [answer for answer in bench.answers if not answer.is_right]
    wrong = max(wrong_ones, key=lambda answer: len(bench.checks_that_see([answer.task])))  # most is built on this task
    status, outcome = check(bench.with_answers(bench.solved, {wrong.task: wrong.source}))
    assert set(lost(outcome)) == set(wrong.loses), lost(outcome)
    cost = sum(bench.lab.checks[id].points for id in wrong.loses)
    assert (status, outcome["score"]) == (1, bench.full_marks - cost)


def test_a_check_cell_says_what_the_check_says(bench):
    cells = {cell.id: cell.source for cell in bench.lab.released.cells if cell.id in bench.lab.checks}
    said = {id: ast.get_docstring(ast.parse(source)) for id, source in cells.items()}
    assert said == {check.id: check.title for check in bench.lab.checks}


def test_every_check_has_a_hint_and_names_a_misconception(bench):
    assert [check.id for check in bench.lab.checks if not check.hint or not check.catches] == []
    assert [check.id for check in bench.lab.checks if not CHECK_ID.fullmatch(check.id)] == []
