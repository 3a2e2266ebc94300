"""nbgrader's view of a course: its configuration and its folders, read from any folder alike."""

from pathlib import Path

from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograder.course import PROJECT_MARK, Course
from autograder.errors import CourseError


def read_config(course: Course) -> Config:
    """Return nbgrader's configuration as the project's `nbgrader_config.py` sets it.

    Raises
    ------
    CourseError
        If the file is missing or does not run.
    """
    try:
        return PyFileConfigLoader(PROJECT_MARK, path=str(course.project)).load_config()
    except Exception as error:
        path = Path(course.project, PROJECT_MARK)
        raise CourseError(f"{path}: expected nbgrader's configuration, got {type(error).__name__}: {error}") from error


def course_directory(course: Course, config: Config, **traits: str) -> CourseDirectory:
    """Return nbgrader's folders and database for a course, wherever the course lies."""
    return CourseDirectory(config=config, root=str(course.root), **traits)
