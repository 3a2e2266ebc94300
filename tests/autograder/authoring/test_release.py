"""Releasing a lab: files, gradebook, and what happens when nbgrader refuses."""

import pytest
from nbgrader.api import Gradebook

from autograder.authoring.release import release
from autograder.course import Course
from autograder.errors import CourseError, UsageError

LAB = "lab01_halves"


def edit_source(course: Course, old: str, new: str) -> None:
    path = course.solutions / f"{LAB}.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def release_bytes(course: Course) -> bytes:
    return (course.release / LAB / f"{LAB}.ipynb").read_bytes()


def test_release_fills_source_release_and_gradebook(small_course):
    changes = release(small_course, LAB)
    assert [change.path.parts[-3] for change in changes] == ["source", "release"]
    assert b"NotImplementedError" in release_bytes(small_course)
    with Gradebook(small_course.database_url, "fp4kv") as gradebook:
        notebook = gradebook.find_notebook(LAB, LAB)
        points = {cell.name: cell.max_score for cell in [*notebook.grade_cells, *notebook.task_cells]}
    assert points == {
        "halve-values": 2,
        "halve-refuses": 1,
        "halve_all-values": 2,
        "halvings-count": 1,
        "explain-why": 2,
    }


def test_a_second_release_changes_nothing(small_course):
    release(small_course, LAB)
    before = (small_course.release / LAB / f"{LAB}.ipynb").stat().st_mtime_ns
    assert release(small_course, LAB) == []
    assert (small_course.release / LAB / f"{LAB}.ipynb").stat().st_mtime_ns == before


def test_a_changed_text_is_released_again(small_course):
    release(small_course, LAB)
    edit_source(small_course, "Why is a half exact?", "Why is half of a number exact?")
    assert [change.kind for change in release(small_course, LAB)] == ["changed", "changed"]
    assert b"half of a number exact" in release_bytes(small_course)


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # nbgrader's own way of adding a submission
def test_a_release_that_nbgrader_refuses_leaves_the_old_one(small_course):
    release(small_course, LAB)
    before = release_bytes(small_course)
    with Gradebook(small_course.database_url, "fp4kv") as gradebook:
        gradebook.add_student("ada")
        gradebook.add_submission(LAB, "ada")
    edit_source(small_course, "halvings", "halving_count")
    checks = small_course.solutions / "checks" / f"{LAB}.py"
    checks.write_text(checks.read_text().replace("halvings", "halving_count"))
    with pytest.raises(CourseError, match=r"Cannot add or remove cells .* there are submissions associated with it"):
        release(small_course, LAB)
    assert release_bytes(small_course) == before
    assert b"halvings" in (small_course.source / LAB / f"{LAB}.ipynb").read_bytes()


def test_an_unknown_lab_is_wrong_usage(small_course):
    with pytest.raises(UsageError, match="expected one of lab01_halves, got 'lab09'"):
        release(small_course, "lab09")
