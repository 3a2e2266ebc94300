"""Where things are: a course's folders, and how a command finds its course.

A course is a folder in nbgrader's shape (`source`, `release`, `submitted`, …). The project is
the folder with `labs/` and `solutions/` that the course teaches from: the nearest one above
the course that has an `nbgrader_config.py`, else the one that this package was installed from.
"""

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import CourseError, UsageError

COURSE_VARIABLE = "AUTOGRADER_COURSE"
ENVIRONMENTS_VARIABLE = "AUTOGRADER_ENVIRONMENTS"
PROJECT_MARK = "nbgrader_config.py"
SECRET_BYTES = 32


@dataclass(frozen=True)
class Course:
    """The folders of one course; nothing is created by asking for a path."""

    root: Path
    project: Path

    @classmethod
    def find(cls, directory: Path | str | None = None) -> "Course":
        """Return the course named by `directory`, by AUTOGRADER_COURSE, or the nearest one above.

        Raises
        ------
        UsageError
            If `directory` is a file, or none is named and no folder above has a course.
        """
        named = directory or os.environ.get(COURSE_VARIABLE)
        if named:
            root = Path(named).resolve()
            if root.exists() and not root.is_dir():
                raise UsageError(f"course: expected a folder, got the file {root}")
            return cls(root, _project_above(root) or _own_project())
        here = Path.cwd().resolve()
        project = _project_above(here)
        if project is None:
            raise UsageError(
                f"course: expected {PROJECT_MARK} in {here} or above, found none; "
                f"name one with --course DIR or {COURSE_VARIABLE}"
            )
        return cls(project / "course", project)

    @property
    def source(self) -> Path:
        """The instructor's version of each lab, built; nbgrader's source folder."""
        return self.root / "source"

    @property
    def release(self) -> Path:
        """What students get."""
        return self.root / "release"

    @property
    def submitted(self) -> Path:
        """What came back, as it came: `<student>/<lab>/`."""
        return self.root / "submitted"

    @property
    def autograded(self) -> Path:
        """Judged notebooks, for formgrader and feedback."""
        return self.root / "autograded"

    @property
    def feedback(self) -> Path:
        """One page for each student and lab."""
        return self.root / "feedback"

    @property
    def private(self) -> Path:
        """Ours: the secret, outcomes, environments, reports, exports, locks."""
        return self.root / ".autograder"

    @property
    def database_url(self) -> str:
        """The gradebook's address when nbgrader's configuration names no other."""
        return f"sqlite:///{self.root / 'gradebook.db'}"

    @property
    def environments(self) -> Path:
        """Where the sandboxes' Python environments are kept between runs."""
        shared = os.environ.get(ENVIRONMENTS_VARIABLE)
        return Path(shared).resolve() if shared else self.private / "environments"

    @property
    def labs(self) -> Path:
        """The public folder of the project: released labs and `labkit`."""
        return self.project / "labs"

    @property
    def solutions(self) -> Path:
        """The private folder of the project: reference, lab sources, checks."""
        return self.project / "solutions"

    def lab_names(self) -> list[str]:
        """Return the labs that have a source, in order."""
        return sorted(path.stem for path in self.solutions.glob("lab[0-9][0-9]_*.py"))

    def outcome_file(self, lab: str, student: str) -> Path:
        """Return where the outcome of a submission is kept."""
        return self.private / "outcomes" / lab / student / "outcome.json"

    def submissions(self, lab: str) -> Iterator[tuple[str, Path]]:
        """Yield (student, folder) for each submission to a lab, by student."""
        for folder in sorted(self.submitted.glob(f"*/{lab}")):
            yield folder.parent.name, folder

    def secret(self) -> bytes:
        """Return the course's secret, from which all seeds derive; made at first use.

        Raises
        ------
        CourseError
            If the file is there but does not hold a secret.
        """
        path = self.private / "secret"
        if not path.exists():
            self.private.mkdir(parents=True, exist_ok=True)
            _create_once(path, secrets.token_bytes(SECRET_BYTES))
        found = path.read_bytes()
        if len(found) != SECRET_BYTES:
            raise CourseError(
                f"{path}: expected {SECRET_BYTES} bytes, got {len(found)}; restore it from a backup, "
                "or remove it and grade every lab again (students' inputs change)"
            )
        return found


def _create_once(path: Path, data: bytes) -> None:
    """Write a private file that another process may be writing too: the first one wins."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as target:
        target.write(data)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _project_above(start: Path) -> Path | None:
    for folder in (start, *start.parents):
        if (folder / PROJECT_MARK).is_file() and (folder / "solutions").is_dir():
            return folder
    return None


def _own_project() -> Path:
    project = Path(__file__).resolve().parents[1]
    if not (project / "solutions").is_dir():
        raise CourseError(
            f"project: expected a folder with solutions/ beside the package, found none in {project}; "
            "install the autograder from a checkout (pip install -e .)"
        )
    return project
