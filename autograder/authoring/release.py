"""`autograder release LAB`: the instructor's notebook into the course, and nbgrader's release of it.

nbgrader's own `generate_assignment` runs in this process, so the release and the gradebook hold
what its command would have made. A second run changes nothing.
"""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory

from autograder.authoring.assemble import assemble
from autograder.authoring.build import Change, notebook_text, released_text, write_text
from autograder.course import Course
from autograder.errors import CourseError, UsageError
from autograder.gradebook.nbgrader_course import course_directory, read_config
from autograder.gradebook.recording import course_lock


def release(course: Course, name: str) -> list[Change]:
    """Build a lab into the course's source, release it, enter it in the gradebook; return what changed.

    Raises
    ------
    UsageError
        If the project has no lab of that name.
    CourseError
        If the lab does not build, or nbgrader refuses it, for instance because cells were added
        or removed after submissions came in. The release is then as it was before.
    """
    if name not in course.lab_names():
        raise UsageError(f"lab: expected one of {', '.join(course.lab_names()) or 'none yet'}, got {name!r}")
    instructor = assemble(course, name)
    source = course.source / name / f"{name}.ipynb"
    released = course.release / name / f"{name}.ipynb"
    wanted = {source: notebook_text(instructor), released: released_text(instructor, name)}
    changes = [Change(path, "changed" if path.exists() else "new") for path in wanted if _differs(path, wanted[path])]
    course.root.mkdir(parents=True, exist_ok=True)
    directory = course_directory(course, read_config(course), assignment_id=name)
    with _scripts_on_path(), course_lock(course):
        if changes or not _is_in_gradebook(directory, name):
            with _restored_on_failure(source.parent, released.parent):
                write_text(source, wanted[source])
                _generate(directory, name)
                if _differs(released, wanted[released]):
                    raise CourseError(f"{name}: expected nbgrader to release what was built, got another {released}")
    return changes


def _is_in_gradebook(directory: CourseDirectory, name: str) -> bool:
    with Gradebook(directory.db_url, directory.course_id) as gradebook:
        try:
            gradebook.find_notebook(name, name)
        except MissingEntry:
            return False
    return True


def _generate(directory: CourseDirectory, name: str) -> None:
    """Run nbgrader's converter; what it logs becomes the message when it fails."""
    log, lines = _quiet_log()
    converter = GenerateAssignment(coursedir=directory, config=directory.config, log=log)
    converter.force = True
    try:
        converter.start()
    except NbGraderException as error:
        reason = lines[0] if lines else str(error)
        raise CourseError(f"{name}: expected nbgrader to release it, got: {reason}") from error


def _quiet_log() -> tuple[logging.Logger, list[str]]:
    """Return a logger of nbgrader's that keeps the last line of each error instead of printing it."""
    lines: list[str] = []
    log = logging.Logger("nbgrader")

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            """Keep what a traceback ends with."""
            text = record.getMessage().strip()
            if "Traceback" in text:
                lines.insert(0, text.splitlines()[-1])

    log.addHandler(Keep(logging.ERROR))
    return log, lines


@contextmanager
def _scripts_on_path() -> Iterator[None]:
    """Let nbgrader find alembic, which it calls by name, when the environment is not activated."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before


@contextmanager
def _restored_on_failure(*folders: Path) -> Iterator[None]:
    """Put folders back as they were if the block fails: nbgrader removes a release that it could not make."""
    with tempfile.TemporaryDirectory() as kept:
        for number, folder in enumerate(folders):
            if folder.exists():
                shutil.copytree(folder, Path(kept, str(number)))
        try:
            yield
        except BaseException:
            for number, folder in enumerate(folders):
                shutil.rmtree(folder, ignore_errors=True)
                if Path(kept, str(number)).exists():
                    shutil.copytree(Path(kept, str(number)), folder)
            raise


def _differs(path: Path, text: str) -> bool:
    return not path.is_file() or path.read_bytes() != text.encode("utf-8")
