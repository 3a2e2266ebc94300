"""Feedback pages: nbgrader's, with our verdicts, in which nothing of a student's is live."""

from collections.abc import Collection
from pathlib import Path

from nbgrader.converters import GenerateFeedback
from nbgrader.converters.base import NbGraderException

from autograder.course import Course
from autograder.errors import CourseError, UsageError
from autograder.gradebook.nbgrader_course import course_directory, read_config


def write_feedback(course: Course, lab: str, students: Collection[str] = ()) -> list[Path]:
    """Write one page for each student whose notebook was judged; return the pages.

    A page shows the notebook with outputs, verdicts, points, penalties and comments. It loads nothing
    from any host, runs no script, and holds only what the checks may reveal.

    Raises
    ------
    UsageError
        If nothing was graded, or a named student was not.
    CourseError
        If nbgrader could not make a page.
    """
    judged = sorted(path.parents[1].name for path in course.autograded.glob(f"*/{lab}/{lab}.ipynb"))
    if not judged:
        raise UsageError(
            f"{lab}: expected judged notebooks in {course.autograded}, found none; run: autograder grade {lab}"
        )
    if missing := sorted(set(students) - set(judged)):
        raise UsageError(f"--student: expected one whose {lab} was graded, got {', '.join(missing)}")
    return [_write_page(course, lab, student) for student in judged if not students or student in students]


def _write_page(course: Course, lab: str, student: str) -> Path:
    config = read_config(course)
    directory = course_directory(course, config, assignment_id=lab, student_id=student)
    converter = GenerateFeedback(coursedir=directory, config=config)
    converter.force = True
    try:
        converter.start()
    except NbGraderException as error:
        raise CourseError(f"{lab}, {student}: expected a feedback page, got: {error}") from error
    return Path(directory.format_path(directory.feedback_directory, student, lab), f"{lab}.html")
