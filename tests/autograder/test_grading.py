"""Grading one submission: bytes in, values out, by the real judge; and what happens when there is no verdict."""

import copy
import json

import nbformat
import pytest

from autograder import grading
from autograder.checks import Check
from autograder.errors import CourseError, SandboxError
from autograder.grading import ATTEMPTS, NOTES_ID, grade, seeds_from, verdict_text
from autograder.intake import Submission
from autograder.judging.environments import environment_for
from autograder.lab import load_lab
from autograder.outcome import CheckResult, load_schema

LAB = "lab01_halves"
SECRET = b"s" * 32
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def lab(released_course):
    return load_lab(released_course, LAB)


@pytest.fixture
def prefix(released_course, lab):
    return environment_for(released_course, lab.header.packages, lab.name)


def files_of(notebook, **others):
    return {f"{LAB}.ipynb": json.dumps(notebook).encode()} | others


def cell_of(notebook, cell_id):
    return next(cell for cell in notebook.cells if cell.id == cell_id)


@pytest.mark.sandbox
def test_solved_scores_all_and_untouched_nothing(lab, prefix, solved):
    best = grade(files_of(solved), lab, "ada", SECRET, prefix).outcome
    assert (best.state, best.score, best.max_score, best.notes) == ("graded", 6, 6, [])
    least = grade(files_of(lab.released), lab, "ada", SECRET, prefix).outcome
    assert (least.state, least.score, least.max_score) == ("graded", 0, 6)


@pytest.mark.sandbox
def test_outcome_names_its_circumstances(lab, prefix, solved):
    submission = Submission(files_of(solved))
    outcome = grade(submission, lab, "ada", SECRET, prefix).outcome
    assert (outcome.student, outcome.lab, outcome.hash) == ("ada", LAB, submission.digest)
    assert (outcome.lab_version, outcome.versions) == (lab.version, lab.versions)
    assert outcome.graded_at.endswith("+00:00") and outcome.seconds > 0
    document = json.loads(outcome.to_json())
    assert set(document) == set(load_schema()["properties"])


@pytest.mark.sandbox
def test_judged_notebook_shows_verdicts_and_nothing_live(lab, prefix, solved):
    evil = "display({'text/html': '<script>1</script>', 'image/svg+xml': '<svg/>'}, raw=True)"
    cell_of(solved, "halve-run-1").source = f"{evil}\nprint('hello')\ndisplay({{'image/png': '{PNG}'}}, raw=True)"
    cell_of(solved, "explain-why-answer").source = "<script>alert(1)</script> `a < b`"
    cell_of(solved, "halvings").source = "def halvings():\n    return 4"
    solved.cells.append(nbformat.v4.new_raw_cell("<img src=x onerror=alert(1)>"))
    graded = grade(files_of(solved), lab, "ada", SECRET, prefix)
    nbformat.validate(graded.notebook)
    cells = graded.notebook.cells
    text = json.dumps([cell.outputs if cell.cell_type == "code" else [cell.cell_type, cell.source] for cell in cells])
    for live in ("<script", "<svg", "<img", "text/html", '"raw"'):
        assert live not in text, live
    assert PNG[:40] in text and "hello" in text and "onerror" in text
    shown = cell_of(graded.notebook, "halvings-count").outputs[0].text
    assert shown.startswith("halvings-count: failed, 0 of 1 points\n")
    assert "expected 3" in shown and "got      4" in shown


@pytest.mark.sandbox
def test_repairs_are_noted_in_the_notebook_and_the_outcome(lab, prefix, solved):
    solved.cells = [cell for cell in solved.cells if cell.id != "halve-values"]
    graded = grade(files_of(solved), lab, "ada", SECRET, prefix)
    assert graded.outcome.score == 6
    assert graded.outcome.notes == ["halve-values: was deleted, restored"]
    assert graded.notebook.cells[0].id == NOTES_ID
    assert "halve-values: was deleted, restored" in graded.notebook.cells[0].source


@pytest.mark.sandbox
def test_files_beside_the_notebook_are_there(lab, prefix, solved):
    cell_of(solved, "halve").source = "from helper import halve"
    helper = b"def halve(x):\n    if x - x != 0:\n        raise ValueError(x)\n    return x / 2\n"
    assert grade(files_of(solved, **{"helper.py": helper}), lab, "ada", SECRET, prefix).outcome.score == 6


@pytest.mark.sandbox
def test_a_foreign_kernel_costs_nothing(lab, prefix, solved):
    solved.metadata = {
        "kernelspec": {"name": "julia-1.10", "display_name": "Julia"},
        "language_info": {"name": "julia"},
    }
    assert grade(files_of(solved), lab, "ada", SECRET, prefix).outcome.score == 6


def test_what_cannot_be_read_is_not_graded(lab, tmp_path):
    outcome = grade({f"{LAB}.ipynb": b"{"}, lab, "ada", SECRET, tmp_path).outcome
    assert (outcome.state, outcome.fault, outcome.checks) == ("not_graded", "submission", [])
    assert "expected JSON" in outcome.reason and outcome.hash


def test_a_failing_machine_is_asked_again_and_never_costs_a_mark(lab, solved, tmp_path, monkeypatch):
    asked = []

    def fail(*args, **kwargs):
        asked.append(args)
        raise SandboxError("bubblewrap: no room")

    monkeypatch.setattr(grading, "judge", fail)
    outcome = grade(files_of(solved), lab, "ada", SECRET, tmp_path).outcome
    assert len(asked) == ATTEMPTS
    assert (outcome.state, outcome.fault, outcome.reason) == ("not_graded", "infrastructure", "bubblewrap: no room")
    assert outcome.checks == []


@pytest.mark.sandbox
def test_a_machine_that_recovers_gives_the_verdict(lab, prefix, solved, monkeypatch):
    real, failures = grading.judge, [SandboxError("once"), SandboxError("twice")]

    def fail_first(*args, **kwargs):
        if failures:
            raise failures.pop()
        return real(*args, **kwargs)

    monkeypatch.setattr(grading, "judge", fail_first)
    assert grade(files_of(solved), lab, "ada", SECRET, prefix).outcome.score == 6


def test_a_fault_of_ours_costs_one_submission_and_no_mark(lab, solved, tmp_path, monkeypatch):
    def break_down(*args, **kwargs):
        raise ZeroDivisionError("in the judge")

    monkeypatch.setattr(grading, "judge", break_down)
    outcome = grade(files_of(solved), lab, "ada", SECRET, tmp_path).outcome
    assert (outcome.state, outcome.fault) == ("not_graded", "infrastructure")
    assert "ZeroDivisionError: in the judge" in outcome.reason


def test_a_wrong_lab_stops_everything(lab, solved, tmp_path, monkeypatch):
    def break_down(*args, **kwargs):
        raise CourseError("halve-values: broken")

    monkeypatch.setattr(grading, "judge", break_down)
    with pytest.raises(CourseError, match="broken"):
        grade(files_of(solved), lab, "ada", SECRET, tmp_path)


@pytest.mark.parametrize("fault", ["no check", "no cell", "other points"])
def test_a_graded_cell_without_its_check_is_an_error(lab, solved, tmp_path, fault):
    cell = cell_of(lab.released, "halve-values")
    if fault == "no check":
        twin = copy.deepcopy(cell)
        twin.id, twin.metadata.nbgrader.grade_id = "halve-bonus", "halve-bonus"
        lab.released.cells.append(twin)
    elif fault == "no cell":
        lab.released.cells.remove(cell)
    else:
        cell.metadata.nbgrader.points = 99
    with pytest.raises(CourseError, match="expected one check for each graded cell"):
        grade(files_of(solved), lab, "ada", SECRET, tmp_path)


def test_a_check_without_a_verdict_is_an_error(lab, solved, tmp_path, monkeypatch):
    monkeypatch.setattr(grading, "judge", lambda *args, **kwargs: grading.Judgement())
    with pytest.raises(CourseError, match="expected a verdict on every check"):
        grade(files_of(solved), lab, "ada", SECRET, tmp_path)


def test_seeds_differ_by_student_check_and_bytes_and_repeat(lab):
    check = next(iter(lab.checks))
    common = Check(check.id, 1, "", check.run, per_student=False)
    seeds = {seeds_from(SECRET, lab, who, what)(check) for who in ("ada", "alan") for what in ("1", "2")}
    assert len(seeds) == 4
    assert len({seeds_from(SECRET, lab, who, "1")(common) for who in ("ada", "alan")}) == 1
    assert seeds_from(SECRET, lab, "ada", "1")(check) == seeds_from(SECRET, lab, "ada", "1")(check)
    assert seeds_from(b"t" * 32, lab, "ada", "1")(check) not in seeds


def test_verdict_text_is_plain():
    text = verdict_text(CheckResult("f-word", 0, 2, "out_of_memory", "f: A word.\ngot \x00\x1b]0;x\x07"))
    assert text == "f-word: out of memory, 0 of 2 points\nf: A word.\ngot \ufffd]0;x\ufffd\n"
