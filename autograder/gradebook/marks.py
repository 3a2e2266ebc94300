"""What the gradebook says of a lab: points of the judge, points of a person, late penalties."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry, Student, SubmittedAssignment

from autograder.course import Course
from autograder.gradebook.nbgrader_course import course_directory, read_config
from autograder.gradebook.recording import course_lock, gradebook_transaction


@dataclass(frozen=True)
class Mark:
    """One student and one lab: who it is, what was given, whether a person has still to mark.

    `score` is None where nothing was graded: that is never a zero.
    """

    student: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_id: str = ""
    score: float | None = None
    max_score: float = 0.0
    late_penalty: float = 0.0
    needs_marking: bool = False

    @property
    def total(self) -> float | None:
        """The points that count: less the late penalty, never below zero."""
        return None if self.score is None else max(0.0, self.score - self.late_penalty)

    @property
    def final(self) -> float | None:
        """The points to hand on: none while a person has still to mark."""
        return None if self.needs_marking else self.total


@contextmanager
def opened(course: Course) -> Iterator[Gradebook]:
    """Open the course's gradebook for one transaction; it is made at first use."""
    course.root.mkdir(parents=True, exist_ok=True)
    scripts = str(Path(sys.executable).parent)
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):  # nbgrader calls alembic by its name
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", "")])
    directory = course_directory(course, read_config(course))
    with course_lock(course):
        if not (course.root / "gradebook.db").exists():
            Gradebook(directory.db_url, directory.course_id).close()
        with gradebook_transaction(directory) as book:
            yield book


def read_marks(course: Course, lab: str) -> list[Mark]:
    """Return a mark for each student of the gradebook, by student id."""
    with opened(course) as book:
        return [_mark(book, lab, student) for student in sorted(book.students, key=lambda student: student.id)]


def _mark(book: Gradebook, lab: str, student: Student) -> Mark:
    who = (
        student.id,
        student.first_name or "",
        student.last_name or "",
        student.email or "",
        student.lms_user_id or "",
    )
    try:
        submission: SubmittedAssignment = book.find_submission(lab, student.id)
    except MissingEntry:
        return Mark(*who)
    return Mark(
        *who,
        score=submission.score,
        max_score=submission.max_score,
        late_penalty=submission.late_submission_penalty or 0.0,
        needs_marking=submission.needs_manual_grade,
    )


def points_text(points: float | None) -> str:
    """Return points with at most two places and never an exponent; nothing for none.

    >>> [points_text(2.0), points_text(5.255), points_text(1234567.8), points_text(None)]
    ['2', '5.25', '1234567.8', '']
    """
    return "" if points is None else f"{points:.2f}".rstrip("0").rstrip(".")
