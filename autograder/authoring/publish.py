"""`autograder publish DIR`: what everybody may read, by a list of what is allowed, and nothing else.

What would be published is searched for answers, hidden cases and mark schemes before a file of it
reaches the target. The target remembers what we wrote there, so that the next time removes it
again and leaves what others put beside it, for instance the `.git` of a web site.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from autograder.authoring.leaks import find_leaks
from autograder.course import Course
from autograder.errors import CourseError, UsageError

MARKER = ".published-by-autograder.json"
BOOK = "book/_build/html"
SINGLE_FILES = ("environment.yml", "LICENSE", "labs/labkit/pyproject.toml")
LABKIT = "labs/labkit/src/labkit"
LEFT_OUT = {"__pycache__", ".ipynb_checkpoints", ".doctrees", ".buildinfo", ".DS_Store"}
SHOWN = 10


def publish(course: Course, target: Path) -> list[Path]:
    """Write the book, the released labs, labkit and the environment to a folder; return its files.

    Raises
    ------
    UsageError
        If the target lies inside the project or around it, is a file, or holds files that we did
        not write.
    CourseError
        If a part is missing, is a link, or holds an answer, a hidden case or a mark scheme.
    """
    target = Path(target).resolve()
    _refuse_target(course.project.resolve(), target)
    chosen = {path.relative_to(course.project): path for path in _allowed(course)}
    with tempfile.TemporaryDirectory() as staged:
        for name, path in chosen.items():
            _copy(path, Path(staged, _published_name(name)))
        _refuse_leaks(course, Path(staged))
        _remove_earlier(target)
        shutil.copytree(staged, target, dirs_exist_ok=True)
    written = sorted(_published_name(name) for name in chosen)
    (target / MARKER).write_text(json.dumps([name.as_posix() for name in written], indent=1) + "\n", encoding="utf-8")
    return [target / name for name in written]


def _allowed(course: Course) -> Iterator[Path]:
    """Yield the files that may be published."""
    project = course.project
    book = project / BOOK
    if not (book / "index.html").is_file():
        raise CourseError(f"{book}: expected the built book, found none; run: make book")
    yield from _files_below(book)
    for name in course.lab_names():
        yield _required(course.labs / name / f"{name}.ipynb", f"autograder build {name}")
    yield from _files_below(project / LABKIT)
    for name in SINGLE_FILES:
        yield _required(project / name, "git checkout")


def _files_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        parts = set(path.relative_to(folder).parts)
        if path.is_symlink():
            raise CourseError(f"{path}: expected plain files to publish, got a link")
        if path.is_file() and not parts & LEFT_OUT and path.suffix != ".pyc":
            yield path


def _required(path: Path, remedy: str) -> Path:
    if path.is_symlink() or not path.is_file():
        raise CourseError(f"{path}: expected a plain file to publish, found none; run: {remedy}")
    return path


def _published_name(name: Path) -> Path:
    """Return where a file of the project lies in the target: the book in `book/`, the rest as it is."""
    return Path("book", name.relative_to(BOOK)) if name.is_relative_to(BOOK) else name


def _refuse_target(project: Path, target: Path) -> None:
    if target.is_relative_to(project) or project.is_relative_to(target):
        raise UsageError(f"target: expected a folder apart from the project {project}, got {target}")
    if target.exists() and not target.is_dir():
        raise UsageError(f"target: expected a folder, got the file {target}")
    if target.is_dir() and any(target.iterdir()) and not (target / MARKER).is_file():
        raise UsageError(f"target: expected an empty folder or one that publish wrote before, got {target}")


def _refuse_leaks(course: Course, staged: Path) -> None:
    leaks = find_leaks(course, staged)
    if leaks:
        lines = [f"  {leak.path.relative_to(staged)}: {leak.secret}" for leak in leaks[:SHOWN]]
        more = [f"  and {len(leaks) - SHOWN} more"] if len(leaks) > SHOWN else []
        raise CourseError("\n".join(["publish: expected no answer and no hidden case, found", *lines, *more]))


def _remove_earlier(target: Path) -> None:
    """Remove the files that we wrote before, and the folders that this leaves empty."""
    target.mkdir(parents=True, exist_ok=True)
    for name in _earlier(target):
        path = target / name
        if path.is_file() and path.parent.resolve().is_relative_to(target):
            path.unlink()
    for folder in sorted((path for path in target.rglob("*") if path.is_dir()), reverse=True):
        if not folder.is_symlink() and ".git" not in folder.relative_to(target).parts and not any(folder.iterdir()):
            folder.rmdir()


def _earlier(target: Path) -> list[str]:
    marker = target / MARKER
    if not marker.is_file():
        return []
    try:
        names = json.loads(marker.read_text(encoding="utf-8"))
    except ValueError:
        raise UsageError(f"{marker}: expected the list of files that publish wrote, got something else") from None
    return [str(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)
