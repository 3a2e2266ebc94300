"""The committed notebooks are what the sources give, run as released, and hold no secret."""

import shutil
import subprocess
import sys
from pathlib import Path

import fp4kv
import nbformat
import pytest
from labkit import validate

from autograder.authoring.build import build
from autograder.authoring.leaks import find_leaks
from autograder.authoring.publish import publish
from autograder.authoring.release import release
from autograder.course import Course

LABS = sorted(path.stem for path in (Path(__file__).parents[3] / "solutions").glob("lab[0-9][0-9]_*.py"))


@pytest.fixture(scope="module")
def course(project, tmp_path_factory) -> Course:
    """A course of its own that teaches from the project under test."""
    return Course(tmp_path_factory.mktemp("course"), project)


def test_committed_notebooks_are_what_the_sources_give(course):
    differing = build(course, check=True)
    assert not differing, "run: autograder build, and commit what it wrote"


@pytest.mark.parametrize("name", LABS)
def test_released_notebook_is_what_nbgrader_releases(course, name):
    release(course, name)
    released = course.release / name / f"{name}.ipynb"
    assert released.read_bytes() == (course.labs / name / f"{name}.ipynb").read_bytes()


@pytest.mark.parametrize("name", LABS)
def test_visible_cases_pass_in_the_solved_notebook(course, name, tmp_path, capsys):
    shutil.copy(course.solutions / name / f"{name}.ipynb", tmp_path)
    status = validate.main(["validate", str(tmp_path / f"{name}.ipynb")])
    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", LABS)
def test_no_task_is_attempted_in_the_released_notebook(course, name, tmp_path, capsys):
    shutil.copy(course.labs / name / f"{name}.ipynb", tmp_path)
    assert validate.main(["validate", str(tmp_path / f"{name}.ipynb")]) == 1
    rows = capsys.readouterr().out.split("\n\n")[0].splitlines()[1:]
    assert rows and all(row.endswith("not attempted") for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", LABS)
@pytest.mark.parametrize(
    ("folder", "verdict"), [("solutions", "Success! Your notebook passes"), ("labs", "VALIDATION FAILED")]
)
def test_nbgrader_validate_runs_the_visible_cases(course, name, folder, verdict, tmp_path):
    shutil.copy(course.project / folder / name / f"{name}.ipynb", tmp_path)
    command = [Path(sys.executable).with_name("nbgrader"), "validate", f"{name}.ipynb"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert verdict in done.stdout
    checks = nbformat.read(tmp_path / f"{name}.ipynb", 4).metadata.lab.checks
    if folder == "labs":
        assert f"VALIDATION FAILED ON {len(checks)} CELL(S)" in done.stdout


def test_labs_hold_no_answer_and_no_hidden_case(course):
    assert find_leaks(course, course.labs) == []


def test_the_search_finds_every_reference_in_the_solved_notebooks(course):
    leaks = [leak for name in LABS for leak in find_leaks(course, course.solutions / name)]
    found = {leak.secret.split(": ")[-1] for leak in leaks}
    assert set(fp4kv.__all__) <= found


@pytest.mark.slow
def test_published_files_hold_no_answer_and_no_hidden_case(course, project, tmp_path):
    if not (project / "book/_build/html/index.html").exists():
        subprocess.run([sys.executable, project / "book/build.py"], cwd=project, check=True)
    written = publish(course, tmp_path / "public")
    assert tmp_path / "public/book/index.html" in written
    assert find_leaks(course, tmp_path / "public") == []
