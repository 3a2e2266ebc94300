"""The lab on formats as its tests need it: its cells, its planted answers, and two ways to ask what they lose.

`lost_in_judge` is the real way, a kernel in a sandbox. `lost_directly` runs the same checks in this process, on
answers that we wrote ourselves, so that many seeds are cheap.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import nbformat
import numpy as np
import pytest
from labkit.expect import Mismatch
from nbformat import NotebookNode

from autograder.checks import Cases, derive_seed
from autograder.course import Course
from autograder.environments import environment_for
from autograder.judge import judge
from autograder.lab import Lab, load_lab
from autograder.planted import Planted, read_planted

LAB = "lab02_formats"
PROJECT = Path(__file__).resolve().parents[2]
SECRET = b"a secret of the tests"
Losses = dict[str, str]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that asks for `planted` every planted answer in turn, named in its id."""
    if "planted" in metafunc.fixturenames:
        answers = read_planted(PROJECT / "solutions" / "planted" / f"{LAB}.py")
        metafunc.parametrize("planted", answers, ids=lambda answer: f"{answer.task}-{answer.name}")


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A course of this project that has released nothing yet: the project's own notebooks count."""
    return Course(tmp_path_factory.mktemp("course"), PROJECT)


@pytest.fixture(scope="session")
def lab(course: Course) -> Lab:
    """The lab on formats."""
    return load_lab(course, LAB)


@pytest.fixture(scope="session")
def answers() -> list[Planted]:
    """Every planted answer."""
    return read_planted(PROJECT / "solutions" / "planted" / f"{LAB}.py")


@pytest.fixture(scope="session")
def solved(course: Course) -> NotebookNode:
    """The solved notebook."""
    return nbformat.read(course.solutions / LAB / f"{LAB}.ipynb", 4)


@pytest.fixture(scope="session")
def core(solved: NotebookNode) -> NotebookNode:
    """The solved notebook without its prose and its free cells: imports, answers, checks."""
    notebook = copy.deepcopy(solved)
    notebook.cells = [cell for cell in notebook.cells if cell.id == "imports" or "nbgrader" in cell.metadata]
    return notebook


@pytest.fixture(scope="session")
def replace() -> Callable[[NotebookNode, Mapping[str, str]], NotebookNode]:
    """A function that returns a notebook with some answer cells replaced."""
    return _replace


@pytest.fixture(scope="session")
def lost_in_judge(course: Course, lab: Lab, core: NotebookNode) -> Callable[[Mapping[str, str]], Losses]:
    """A function that returns the checks that the solved lab loses with some answers replaced, and their messages."""
    prefix = environment_for(course, lab.header.packages, LAB)

    def losses(changed: Mapping[str, str]) -> Losses:
        seeds = lambda check: derive_seed(SECRET, LAB, check, "tester", "")  # noqa: E731
        judged = judge(_replace(core, changed), lab, {}, seeds, prefix=prefix)
        return {result.id: f"{result.status}: {result.message}" for result in judged.results if not result.points}

    return losses


@pytest.fixture(scope="session")
def lost_directly(lab: Lab, core: NotebookNode) -> Callable[[Mapping[str, str], int], Losses]:
    """The same as `lost_in_judge`, in this process and for any seed."""
    return lambda changed, seed: _losses(lab, _functions(_replace(core, changed)), seed)


def _replace(notebook: NotebookNode, changed: Mapping[str, str]) -> NotebookNode:
    replaced = copy.deepcopy(notebook)
    cells = {cell.id: cell for cell in replaced.cells}
    for task, source in changed.items():
        cells[task].source = source
    return replaced


@dataclass(frozen=True)
class _Function:
    """A function that is called in this process, on copies of its arguments as the judge's are."""

    function: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:
        return self.function(*copy.deepcopy(args))

    def and_arguments(self, *args: Any) -> Any:
        given = copy.deepcopy(args)
        return self.function(*given), given


def _functions(notebook: NotebookNode) -> SimpleNamespace:
    names: dict[str, Any] = {}
    for cell in notebook.cells:
        if cell.id == "imports" or cell.metadata.get("nbgrader", {}).get("solution"):
            exec(compile(cell.source, cell.id, "exec"), names)
    return SimpleNamespace(
        **{name: _Function(thing) for name, thing in names.items() if isinstance(thing, FunctionType)}
    )


def _losses(lab: Lab, student: SimpleNamespace, seed: int) -> Losses:
    lost = {}
    for check in lab.checks:
        try:
            with np.errstate(all="ignore"):  # a warning costs nothing in the judge either
                check.run(student, Cases(f"{seed} {check.id}".encode()))
        except (Mismatch, ArithmeticError, LookupError, TypeError, ValueError) as error:
            lost[check.id] = f"{type(error).__name__}: {error}"
    return lost
