"""What a second run grades: only what changed, and it says what that was."""

import shutil

import pytest

from autograder.classroom.plan import make_plan, reason_to_grade
from autograder.errors import UsageError
from autograder.lab import load_lab
from autograder.outcome import Outcome

LAB = "lab01_halves"


@pytest.fixture
def course(released_course):
    """A released course to which two students handed in what they were given."""
    for student in ("ada", "bo"):
        shutil.copytree(released_course.release / LAB, released_course.submitted / student / LAB)
    return released_course


def known(lab, digest: str, **changed: str) -> Outcome:
    fields = {"state": "graded", "lab_version": lab.version, "versions": dict(lab.versions)} | changed
    return Outcome(student="ada", lab=LAB, hash=digest, **fields)


def on_file(course, student: str, outcome: Outcome) -> None:
    outcome.student = student
    outcome.write(course.outcome_file(LAB, student))


def whys(plan) -> dict[str, str]:
    return {task.student: task.why for task in plan.tasks}


def test_what_was_never_graded_is_new(course):
    assert whys(make_plan(course, load_lab(course, LAB))) == {"ada": "new", "bo": "new"}


def test_what_is_as_it_was_is_left_alone(course):
    lab = load_lab(course, LAB)
    digest = make_plan(course, lab).tasks[0].submission.digest
    on_file(course, "ada", known(lab, digest))

    plan = make_plan(course, lab)

    assert whys(plan) == {"bo": "new"}
    assert [outcome.student for outcome in plan.unchanged] == ["ada"]


def test_force_grades_everything(course):
    lab = load_lab(course, LAB)
    on_file(course, "ada", known(lab, make_plan(course, lab).tasks[0].submission.digest))

    assert whys(make_plan(course, lab, force=True)) == {"ada": "asked for", "bo": "asked for"}


def test_a_changed_file_is_graded_again(course):
    lab = load_lab(course, LAB)
    on_file(course, "ada", known(lab, make_plan(course, lab).tasks[0].submission.digest))
    (course.submitted / "ada" / LAB / "helper.py").write_text("x = 1\n")

    assert whys(make_plan(course, lab, ["ada"])) == {"ada": "submission changed"}


@pytest.mark.parametrize("part", ["lab", "checks", "reference", "labkit"])
def test_a_changed_part_is_named(part, course):
    lab = load_lab(course, LAB)
    old = known(lab, "d", lab_version="other", versions=dict(lab.versions) | {part: "other"})

    assert reason_to_grade(old, "d", lab) == f"{part} changed"


def test_what_our_side_failed_at_is_graded_again_and_what_cannot_be_read_is_not(course):
    lab = load_lab(course, LAB)

    assert reason_to_grade(known(lab, "d", state="not_graded", fault="infrastructure"), "d", lab)
    assert not reason_to_grade(known(lab, "d", state="not_graded", fault="submission"), "d", lab)


def test_a_folder_that_cannot_be_read_is_told_once_and_disturbs_nobody(course, tmp_path):
    (course.submitted / "eve").mkdir()
    (course.submitted / "eve" / LAB).symlink_to(tmp_path)
    lab = load_lab(course, LAB)

    plan = make_plan(course, lab)

    assert whys(plan) == {"ada": "new", "bo": "new"}
    (unreadable,) = plan.unreadable
    assert (unreadable.student, unreadable.state, unreadable.fault) == ("eve", "not_graded", "submission")
    on_file(course, "eve", unreadable)
    again = make_plan(course, lab, ["eve"])
    assert (again.unreadable, [outcome.student for outcome in again.unchanged]) == ([], ["eve"])


def test_a_student_who_handed_in_nothing_is_wrong_usage(course):
    with pytest.raises(UsageError, match="did you mean ada"):
        make_plan(course, load_lab(course, LAB), ["adaa"])


def test_a_class_that_handed_in_nothing_is_wrong_usage(released_course):
    with pytest.raises(UsageError, match="autograder collect"):
        make_plan(released_course, load_lab(released_course, LAB))
