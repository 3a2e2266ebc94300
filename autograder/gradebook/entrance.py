"""Grade one submission's folder and record it: what nbgrader's own command and button do for each student."""

from pathlib import Path

from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.course import Course
from autograder.errors import SubmissionError
from autograder.gradebook.recording import record
from autograder.grading import Graded, grade, not_graded
from autograder.intake import read_folder
from autograder.judging.environments import environment_for
from autograder.lab import load_lab
from autograder.outcome import Outcome


def grade_folder(
    course: Course,
    lab_name: str,
    student: str,
    folder: Path,
    *,
    directory: CourseDirectory | None = None,
    config: Config | None = None,
) -> Outcome:
    """Grade what lies in a folder as a student's submission, record it, return the outcome.

    Raises
    ------
    CourseError
        If the lab is broken or not released; no submission can be blamed.
    """
    lab = load_lab(course, lab_name)
    try:
        submission = read_folder(folder)
    except SubmissionError as problem:
        graded = Graded(not_graded(lab, student, "", str(problem), "submission"))
    else:
        prefix = environment_for(course, lab.header.packages, lab.name)
        graded = grade(submission, lab, student, course.secret(), prefix)
    return record(course, graded, directory=directory, config=config)
