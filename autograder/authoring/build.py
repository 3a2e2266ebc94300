"""`autograder build`: sources → the released notebooks in labs/ and the solved ones in solutions/.

The released form is made by nbgrader's own exporter and preprocessors, the ones that
`nbgrader generate_assignment` runs, without its database; so both write the same bytes.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.preprocessors import SaveCells
from traitlets.config import Config

from autograder.authoring.assemble import assemble
from autograder.authoring.stubs import release_preprocessors
from autograder.course import Course
from autograder.errors import CourseError, UsageError


@dataclass(frozen=True)
class Change:
    """A generated file that differs from its source: `kind` is "new", "changed" or "stale"."""

    path: Path
    kind: str

    def __str__(self) -> str:
        return f"{self.path} ({self.kind})"


def build(course: Course, names: list[str] | None = None, check: bool = False) -> list[Change]:
    """Write the generated notebooks of labs (all when none is named); return what differed.

    With `check` nothing is written. A stale file is one whose lab has no source any more; it is
    looked for when all labs are built, and removed.

    Raises
    ------
    UsageError
        If a name is not a lab of the project.
    CourseError
        If a lab's source, reference and checks do not agree.
    """
    known = course.lab_names()
    for name in names or ():
        if name not in known:
            raise UsageError(f"lab: expected one of {', '.join(known) or 'none yet'}, got {name!r}")
    wanted = {path: text for name in names or known for path, text in generated(course, name).items()}
    changes = [Change(path, kind) for path, text in wanted.items() if (kind := _difference(path, text))]
    stale = [] if names else [Change(path, "stale") for path in _stale(course, known)]
    if not check:
        for change in changes:
            write_text(change.path, wanted[change.path])
        for change in stale:
            change.path.unlink()
    return changes + stale


def generated(course: Course, name: str) -> dict[Path, str]:
    """Return the text of each file that a lab's source stands for."""
    instructor = assemble(course, name)
    return {
        course.labs / name / f"{name}.ipynb": released_text(instructor, name),
        course.solutions / name / f"{name}.ipynb": notebook_text(instructor),
    }


def notebook_text(notebook: NotebookNode) -> str:
    """Return a notebook as the bytes that are kept in git: sorted keys, one space, a last newline."""
    text: str = nbformat.writes(notebook, version=4)
    return text if text.endswith("\n") else text + "\n"


def released_text(instructor: NotebookNode, name: str) -> str:
    """Return what `nbgrader generate_assignment` makes of the instructor's notebook.

    Raises
    ------
    CourseError
        If nbgrader refuses the notebook.
    """
    exporter = NotebookExporter(config=Config({"Exporter": {"default_preprocessors": []}}))
    for step in release_preprocessors():
        if step is not SaveCells:
            exporter.register_preprocessor(step, enabled=True)
    try:
        text, _ = exporter.from_notebook_node(instructor)
    except (RuntimeError, ValueError, nbformat.ValidationError) as error:
        raise CourseError(f"{name}: expected a notebook that nbgrader can release, got: {error}") from error
    return str(text)


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    temporary.write_text(text, encoding="utf-8", newline="\n")
    temporary.replace(path)


def _difference(path: Path, text: str) -> str:
    if not path.is_file():
        return "new"
    return "" if path.read_bytes() == text.encode("utf-8") else "changed"


def _stale(course: Course, known: list[str]) -> list[Path]:
    found = [*course.labs.glob("lab[0-9][0-9]_*/*.ipynb"), *course.solutions.glob("lab[0-9][0-9]_*/*.ipynb")]
    return sorted(path for path in found if path.stem == path.parent.name and path.stem not in known)
