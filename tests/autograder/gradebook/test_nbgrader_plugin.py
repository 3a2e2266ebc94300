"""Plain nbgrader commands and formgrader's button grade through the judge, from any folder, and fail closed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.auth import Authenticator
from nbgrader.exchange import ExchangeFactory

from autograder.errors import CourseError
from autograder.gradebook.nbgrader_course import course_directory, read_config
from autograder.gradebook.plugin import INSTALLED, install, is_installed
from autograder.outcome import Outcome

LAB = "lab01_halves"
NBGRADER = Path(sys.executable).with_name("nbgrader")


def hand_in(course, student, notebook, stamp=""):
    folder = course.submitted / student / LAB
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{LAB}.ipynb").write_text(notebook if isinstance(notebook, str) else json.dumps(notebook))
    if stamp:
        (folder / "timestamp.txt").write_text(stamp)
    return folder


def scores(course):
    with Gradebook(f"sqlite:///{course.root}/gradebook.db", "fp4kv") as book:
        return {submission.student.id: submission.score for submission in book.assignment_submissions(LAB)}


def outcome_of(course, student):
    return Outcome.from_json(course.outcome_file(LAB, student).read_bytes())


@pytest.fixture
def run_nbgrader(released_course, tmp_path):
    """Run `nbgrader …` in another folder, with the configuration where `install` puts it."""
    prefix, elsewhere = tmp_path / "prefix", tmp_path / "elsewhere"
    install(prefix, released_course.project)
    elsewhere.mkdir()

    def run(*arguments):
        environment = os.environ | {"JUPYTER_CONFIG_PATH": str(prefix / "etc" / "jupyter"), "HOME": str(tmp_path)}
        return subprocess.run(
            [NBGRADER, *arguments], cwd=elsewhere, env=environment, capture_output=True, text=True, timeout=200
        )

    return run


@pytest.fixture
def api(released_course):
    """What formgrader's buttons call."""
    config = read_config(released_course)
    directory = course_directory(released_course, config)
    return NbGraderAPI(directory, Authenticator(config=config), ExchangeFactory(config=config), config=config)


@pytest.mark.sandbox
def test_nbgrader_autograde_grades_through_the_judge(released_course, solved, run_nbgrader):
    untouched = nbformat.read(released_course.release / LAB / f"{LAB}.ipynb", 4)
    hand_in(released_course, "ada", solved, "2026-01-01 10:00:00 UTC")
    hand_in(released_course, "bob", "{ broken")
    hand_in(released_course, "cyd", untouched)
    done = run_nbgrader("autograde", LAB)
    assert done.returncode == 1, done.stderr
    assert "bob, lab01_halves: not graded" in done.stderr and "expected JSON" in done.stderr
    assert scores(released_course) == {"ada": 6, "cyd": 0}
    assert [outcome_of(released_course, name).state for name in ("ada", "bob", "cyd")] == [
        "graded",
        "not_graded",
        "graded",
    ]


@pytest.mark.sandbox
def test_nbgrader_autograde_grades_again_only_what_is_newer(released_course, solved, run_nbgrader):
    hand_in(released_course, "ada", solved, "2026-01-01 10:00:00 UTC")
    assert run_nbgrader("autograde", LAB).returncode == 0
    first = outcome_of(released_course, "ada").graded_at
    again = run_nbgrader("autograde", LAB)
    assert "Skipping existing assignment" in again.stderr
    assert outcome_of(released_course, "ada").graded_at == first
    next(cell for cell in solved.cells if cell.id == "halvings").source = "def halvings():\n    return 9"
    hand_in(released_course, "ada", solved, "2026-01-02 10:00:00 UTC")
    assert run_nbgrader("autograde", LAB).returncode == 0
    assert scores(released_course) == {"ada": 5}


@pytest.mark.sandbox
def test_nbgrader_export_and_feedback_show_the_verdict(released_course, solved, run_nbgrader, tmp_path):
    hand_in(released_course, "ada", solved)
    assert run_nbgrader("autograde", LAB).returncode == 0
    with Gradebook(f"sqlite:///{released_course.root}/gradebook.db", "fp4kv") as book:
        book.add_student("eve", last_name="Eve, the", first_name="late")
    assert run_nbgrader("generate_feedback", LAB).returncode == 0
    page = (released_course.feedback / "ada" / LAB / f"{LAB}.html").read_text()
    assert "halve-values: passed, 2 of 2 points" in page and "<script" not in page
    assert run_nbgrader("export", "--to", str(tmp_path / "marks.csv")).returncode == 0
    lines = (tmp_path / "marks.csv").read_text().splitlines()
    assert lines[1:] == [
        "lab01_halves,,,ada,,,,6.0,0.0,6.0,8.0",
        'lab01_halves,,,eve,"Eve, the",late,,,,,8.0',
    ]


@pytest.mark.sandbox
def test_formgraders_button_grades_through_the_judge(released_course, solved, api):
    solved.cells = [cell for cell in solved.cells if cell.id != "halve-values"]
    folder = hand_in(released_course, "ada", solved)
    (folder / f"{LAB}.ipynb").rename(folder / "mine.ipynb")
    (folder / "evil.html").write_text("<script>alert(1)</script>")
    result = api.autograde(LAB, "ada")
    assert result["success"], result
    assert scores(released_course) == {"ada": 6}
    assert {path.name for path in (released_course.autograded / "ada" / LAB).iterdir()} == {f"{LAB}.ipynb"}
    (row,) = api.get_submissions(LAB)
    assert (row["student"], row["autograded"], row["score"], row["needs_manual_grade"]) == ("ada", True, 6, True)


def test_what_is_not_graded_waits_in_formgrader(released_course, api):
    hand_in(released_course, "bob", "{ broken")
    result = api.autograde(LAB, "bob")
    assert not result["success"] and "expected JSON" in result["log"]
    (row,) = api.get_submissions(LAB)
    assert (row["student"], row["autograded"], row["submitted"], row["id"]) == ("bob", False, True, None)


def test_a_lab_without_its_check_grades_nobody(released_course, solved, api):
    hand_in(released_course, "ada", solved)
    checks = released_course.solutions / "checks" / f"{LAB}.py"
    text = checks.read_text()
    checks.write_text(text[: text.index('@check("halvings-count"')])
    result = api.autograde(LAB, "ada")
    assert not result["success"] and "expected one check for each graded cell" in result["log"]
    assert scores(released_course) == {}


def test_nothing_handed_in_is_said(released_course, api):
    result = api.autograde(LAB, "nobody")
    assert not result["success"] and "No submissions were matched" in str(result)


def test_install_writes_a_file_that_nbgrader_loads(released_course, tmp_path):
    assert not is_installed(tmp_path)
    path = install(tmp_path, released_course.project)
    assert path == tmp_path / INSTALLED and is_installed(tmp_path)
    assert install(tmp_path, released_course.project).read_text() == path.read_text()


def test_install_leaves_another_configuration_alone(released_course, tmp_path):
    other = tmp_path / INSTALLED
    other.parent.mkdir(parents=True)
    other.write_text("c.Exchange.root = '/srv'\n")
    with pytest.raises(CourseError, match="found another"):
        install(tmp_path, released_course.project)
    assert other.read_text() == "c.Exchange.root = '/srv'\n"


def test_install_wants_a_project(tmp_path):
    with pytest.raises(CourseError, match=r"expected nbgrader_config\.py"):
        install(tmp_path, tmp_path)
