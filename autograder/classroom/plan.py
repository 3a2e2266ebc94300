"""What a run has to grade and why: only what changed since the outcome on file."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from autograder.course import Course
from autograder.errors import SubmissionError, UsageError
from autograder.grading import not_graded
from autograder.intake import Submission, read_folder
from autograder.lab import Lab
from autograder.outcome import Outcome

INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True)
class Task:
    """One submission to grade, and why."""

    student: str
    submission: Submission
    why: str


@dataclass
class Plan:
    """Everything handed in to a lab, sorted by what there is to do.

    `unreadable` are outcomes of folders that nothing can be read from: known without grading.
    """

    tasks: list[Task] = field(default_factory=list)
    unreadable: list[Outcome] = field(default_factory=list)
    unchanged: list[Outcome] = field(default_factory=list)


def make_plan(course: Course, lab: Lab, students: Collection[str] = (), *, force: bool = False) -> Plan:
    """Read every submission to a lab and compare it with what was graded before.

    Raises
    ------
    UsageError
        If nothing was handed in, or a named student handed in nothing.
    """
    plan = Plan()
    for student, folder in _chosen(course, lab.name, students):
        known = read_outcome(course, lab.name, student)
        try:
            submission = read_folder(folder)
        except SubmissionError as error:
            _plan_unreadable(plan, lab, student, str(error), known)
            continue
        why = "asked for" if force else reason_to_grade(known, submission.digest, lab)
        if why:
            plan.tasks.append(Task(student, submission, why))
        elif known:
            plan.unchanged.append(known)
    return plan


def reason_to_grade(known: Outcome | None, digest: str, lab: Lab) -> str:
    """Return why a submission must be graded; empty if what is known of it still holds."""
    if known is None:
        return "new"
    if known.fault == INFRASTRUCTURE:
        return "not graded last time"
    if known.hash != digest:
        return "submission changed"
    if known.lab_version != lab.version:
        changed = [part for part, version in sorted(lab.versions.items()) if known.versions.get(part) != version]
        return f"{', '.join(changed) or 'lab'} changed"
    return ""


def read_outcome(course: Course, lab: str, student: str) -> Outcome | None:
    """Return the outcome on file, or None if the submission was never graded."""
    path = course.outcome_file(lab, student)
    return Outcome.from_json(path.read_bytes()) if path.is_file() else None


def read_outcomes(course: Course, lab: str) -> list[Outcome]:
    """Return every outcome of a lab on file, by student."""
    folder = course.outcome_file(lab, "student").parents[1]
    return [Outcome.from_json(path.read_bytes()) for path in sorted(folder.glob("*/outcome.json"))]


def _plan_unreadable(plan: Plan, lab: Lab, student: str, reason: str, known: Outcome | None) -> None:
    if known and known.state == "not_graded" and known.reason == reason:
        plan.unchanged.append(known)
        return
    plan.unreadable.append(not_graded(lab, student, "", reason, "submission"))


def _chosen(course: Course, lab: str, students: Collection[str]) -> Iterator[tuple[str, Path]]:
    handed_in = dict(course.submissions(lab))
    if not handed_in:
        raise UsageError(
            f"{lab}: expected submissions in {course.submitted}/*/{lab}, found none; run: autograder collect"
        )
    for student in students:
        if student not in handed_in:
            near = get_close_matches(student, handed_in, n=3)
            advice = f"; did you mean {' or '.join(near)}?" if near else ""
            raise UsageError(f"--student: expected one who handed in {lab}, got {student!r}{advice}")
    for student, folder in handed_in.items():
        if not students or student in students:
            yield student, folder
