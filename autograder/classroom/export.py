"""Points as a CSV file in the shape that an LMS imports.

Blank, not zero, where there is nothing to hand on: an LMS keeps what it has there. The shapes are
read from public documents of Canvas and Moodle; both match people, not rows.
"""

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import replace

from autograder.classroom.plan import read_outcomes
from autograder.course import Course
from autograder.errors import UsageError
from autograder.gradebook.marks import Mark, points_text, read_marks

Row = Iterable[str]


def gather(course: Course, lab: str) -> list[Mark]:
    """Return the marks of a lab; whoever was not graded has no score, whatever the gradebook holds.

    Raises
    ------
    UsageError
        If the course has no students.
    """
    not_graded = {outcome.student for outcome in read_outcomes(course, lab) if outcome.state == "not_graded"}
    marks = read_marks(course, lab)
    if not marks:  # a mistyped --course, as a rule
        raise UsageError(
            f"{lab}: expected students in the gradebook of {course.root}, found none; run: autograder roster"
        )
    return [replace(mark, score=None) if mark.student in not_graded else mark for mark in marks]


def as_csv(marks: list[Mark], title: str) -> str:
    """Return everything that is known, one line for each student."""
    head = ["id", "last_name", "first_name", "email", title, "max_score", "late_penalty", "needs_marking"]
    return _text(
        [
            head,
            *(
                [
                    *(mark.student, mark.last_name, mark.first_name, mark.email, points_text(mark.total)),
                    *(
                        points_text(mark.max_score),
                        points_text(mark.late_penalty),
                        "yes" if mark.needs_marking else "no",
                    ),
                ]
                for mark in marks
            ),
        ]
    )


def as_canvas(marks: list[Mark], title: str) -> str:
    """Return a Canvas gradebook: its fixed columns, the row of possible points, then the students."""
    possible = max((mark.max_score for mark in marks), default=0.0)
    rows = [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", title],
        ["    Points Possible", "", "", "", "", points_text(possible)],
    ]
    for mark in marks:
        rows.append(
            [f"{mark.last_name}, {mark.first_name}", mark.lms_id, "", mark.student, "", points_text(mark.final)]
        )
    return _text(rows)


def as_moodle(marks: list[Mark], title: str) -> str:
    """Return a Moodle grade export: students by id number and address, one column of real grades."""
    rows = [["First name", "Surname", "ID number", "Email address", f"Assignment: {title} (Real)"]]
    for mark in marks:
        rows.append([mark.first_name, mark.last_name, mark.student, mark.email, points_text(mark.final)])
    return _text(rows)


EXPORTS: dict[str, Callable[[list[Mark], str], str]] = {"csv": as_csv, "canvas": as_canvas, "moodle": as_moodle}


def _text(rows: Iterable[Row]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()
