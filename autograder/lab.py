"""One lab as the grader knows it: its header, its checks, its released notebook, its version."""

import hashlib
import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import jupytext
import nbformat
import yaml
from nbformat import NotebookNode

from autograder.checks import Registry
from autograder.course import Course
from autograder.errors import CourseError, UsageError
from autograder.limits import Limits

REGISTRY_NAME = "checks"
HEADER_KEYS = {"title", "packages", "minutes", "solved_seconds", "limits", "points"}


@dataclass(frozen=True)
class Header:
    """What a lab's source says of itself in the first lines.

    `packages` is the allow-list of the sandbox; `minutes` is a student's sitting;
    `solved_seconds` the budget of the solved notebook; `points` those of manually marked tasks.
    """

    title: str
    packages: tuple[str, ...]
    minutes: int
    solved_seconds: float
    limits: Limits = field(default_factory=Limits)
    points: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Lab:
    """Everything that grading one lab needs."""

    name: str
    header: Header
    checks: Registry
    released: NotebookNode
    versions: dict[str, str]

    @property
    def version(self) -> str:
        """One digest over the parts in `versions`: a change of any asks for grading again."""
        parts = "\0".join(f"{name}={digest}" for name, digest in sorted(self.versions.items()))
        return hashlib.sha256(parts.encode()).hexdigest()


def load_lab(course: Course, name: str) -> Lab:
    """Return a lab of the course's project, with the released notebook that students were given.

    Raises
    ------
    UsageError
        If the project has no lab of that name; the message lists those it has.
    CourseError
        If the lab's source, checks or release are missing or broken.
    """
    source = course.solutions / f"{name}.py"
    if name not in course.lab_names():
        raise UsageError(f"lab: expected one of {', '.join(course.lab_names()) or 'none yet'}, got {name!r}")
    released_file = released_notebook(course, name)
    return Lab(
        name=name,
        header=read_header(source),
        checks=load_checks(course.solutions / "checks" / f"{name}.py"),
        released=nbformat.read(released_file, 4),
        versions={
            "lab": _digest([source, released_file]),
            "checks": _digest(check_files(course.solutions / "checks" / f"{name}.py")),
            "reference": _digest(sorted((course.solutions / "fp4kv").rglob("*.py"))),
            "labkit": _digest(_files_of_labkit(course)),
        },
    )


def released_notebook(course: Course, name: str) -> Path:
    """Return the file that students were given: the course's release, else the project's."""
    for folder in (course.release, course.labs):
        path = folder / name / f"{name}.ipynb"
        if path.is_file():
            return path
    raise CourseError(f"{name}: expected a released notebook, found none; run: autograder build {name}")


def read_header(source: Path) -> Header:
    """Return the header of a lab's source.

    Raises
    ------
    CourseError
        If a key is missing or unknown, or a limit is wrong.
    """
    given = _front_matter(source).get("lab")
    if not isinstance(given, dict):
        raise CourseError(f"{source.name}: expected a header with a `lab:` section, got {given!r}")
    missing, unknown = {"title", "packages", "minutes", "solved_seconds"} - set(given), set(given) - HEADER_KEYS
    if missing or unknown:
        raise CourseError(f"{source.name}: header lacks {sorted(missing)}, does not know {sorted(unknown)}")
    return Header(
        title=str(given["title"]),
        packages=tuple(given["packages"]),
        minutes=int(given["minutes"]),
        solved_seconds=float(given["solved_seconds"]),
        limits=Limits.from_header(given.get("limits", {})),
        points={name: float(points) for name, points in given.get("points", {}).items()},
    )


def _front_matter(source: Path) -> dict[str, Any]:
    """Return the YAML at the top of a percent script; jupytext keeps for itself what is under `jupyter:`."""
    cells = jupytext.read(source, fmt="py:percent").cells
    text = cells[0].source.strip().strip("-") if cells and cells[0].cell_type == "raw" else ""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CourseError(f"{source.name}: expected YAML in the first lines, got: {error}") from None
    return found if isinstance(found, dict) else {}


def check_files(path: Path) -> list[Path]:
    """Return the file of a lab's checks and, where they are many, the parts in the folder of the same name."""
    return [path, *sorted(path.with_suffix("").glob("*.py"))]


def load_checks(path: Path) -> Registry:
    """Return the checks that a file registers, by path: no lab is imported by name.

    The file may import its parts, `from .codes import checks`, from the folder of the same name beside it.

    Raises
    ------
    CourseError
        If the file is missing, does not run, or has no `checks = Registry()`.
    """
    if not path.is_file():
        raise CourseError(f"checks: expected {path}, found none")
    registry = getattr(_run_file(path), REGISTRY_NAME, None)
    if not isinstance(registry, Registry):
        raise CourseError(f"{path.name}: expected `{REGISTRY_NAME} = Registry()`, got {type(registry).__name__}")
    return registry


def _run_file(path: Path) -> ModuleType:
    name = f"autograder_checks_{path.stem}"
    for part in [module for module in sys.modules if module.startswith(f"{name}.")]:
        del sys.modules[part]  # of another course, or from before a change
    folder = str(path.with_suffix(""))
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        raise CourseError(f"{path.name}: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and doctest look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CourseError(f"{path.name}: expected it to run, got {type(error).__name__}: {error}") from error
    return module


def _files_of_labkit(course: Course) -> list[Path]:
    """Return all that a sandbox is given of labkit: Python, and the C++ that kernels are run with."""
    found = (course.labs / "labkit" / "src" / "labkit").rglob("*")
    return sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)


def _digest(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
