"""`nbgrader export` without invented zeros, and with names that hold commas."""

import csv
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Gradebook, MissingEntry, Student
from nbgrader.plugins import ExportPlugin

COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)


class BlankExport(ExportPlugin):  # type: ignore[misc]  # nbgrader has no types
    """nbgrader's table, column by column; blank where nothing was graded: that is no zero."""

    def export(self, gradebook: Gradebook) -> None:
        """Write one line for each assignment and student."""
        target = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", target)
        with target.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            for assignment in gradebook.assignments:
                for student in gradebook.students:
                    if _is_wanted(assignment.name, self.assignment) and _is_wanted(student.id, self.student):
                        writer.writerow(_row(gradebook, assignment, student))


def _is_wanted(name: str, wanted: list[Any]) -> bool:
    return not wanted or name in map(str, wanted)


def _row(gradebook: Gradebook, assignment: Assignment, student: Student) -> dict[str, Any]:
    row = {
        "assignment": assignment.name,
        "duedate": assignment.duedate,
        "student_id": student.id,
        "last_name": student.last_name,
        "first_name": student.first_name,
        "email": student.email,
        "max_score": assignment.max_score,
    }
    try:
        submission = gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        return row
    penalty = submission.late_submission_penalty or 0.0
    return row | {
        "timestamp": submission.timestamp,
        "raw_score": submission.score,
        "late_submission_penalty": penalty,
        "score": max(0.0, submission.score - penalty),
    }
