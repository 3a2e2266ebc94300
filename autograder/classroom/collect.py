"""Submissions come in from nbgrader's exchange, and what every way of collecting shares.

A zip of an LMS is read by `lms_zip`.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.api import MissingEntry

from autograder.course import Course
from autograder.errors import CourseError, UsageError
from autograder.gradebook.marks import opened

TIMESTAMP_FILE = "timestamp.txt"


@dataclass
class Collection:
    """What came in: students whose submission was written, and files that were refused and why."""

    collected: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def from_exchange(course: Course, lab: str) -> Collection:
    """Let nbgrader collect a lab from its exchange, newer attempts over older ones.

    Raises
    ------
    CourseError
        If nbgrader refuses; the text holds its last words.
    """
    before = dict(_states(course, lab))
    command = [sys.executable, "-m", "nbgrader", "collect", lab, "--update", f"--course-dir={course.root}"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # it calls alembic by name
    environment = os.environ | {"PATH": path}
    done = subprocess.run(command, cwd=course.project, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = " ".join(done.stderr.strip().splitlines()[-3:])
        raise CourseError(f"nbgrader collect: expected it to succeed, got status {done.returncode}: {last}")
    return Collection([student for student, state in _states(course, lab) if before.get(student) != state])


def set_due(course: Course, lab: str, text: str) -> None:
    """Keep with the assignment when it was due; a time without a zone is UTC.

    Raises
    ------
    UsageError
        If the text is no ISO 8601 time, or the lab was not released.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--due: expected a time as 2026-05-31T23:59, got {text!r}") from None
    utc = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    with opened(course) as book:
        try:
            book.find_assignment(lab)
        except MissingEntry:
            raise UsageError(f"--due: expected a released lab, got {lab}; run: autograder release {lab}") from None
        book.update_or_create_assignment(lab, duedate=utc.replace(tzinfo=None))


def _states(course: Course, lab: str) -> Iterator[tuple[str, str]]:
    for student, folder in course.submissions(lab):
        path = folder / TIMESTAMP_FILE
        yield student, path.read_text(errors="replace") if path.is_file() else ""


def students_by_lms_id(course: Course) -> dict[str, str]:
    """Return the gradebook's students by their number in the LMS."""
    with opened(course) as book:
        return {str(student.lms_user_id): student.id for student in book.students if student.lms_user_id}


def due_date(course: Course, lab: str) -> datetime | None:
    """Return when a lab was due, None if no time is set."""
    with opened(course) as book:
        try:
            due = book.find_assignment(lab).duedate
        except MissingEntry:
            return None
    return due.replace(tzinfo=UTC) if due else None
