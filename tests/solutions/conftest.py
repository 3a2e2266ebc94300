"""The lab on formats as its tests need it: its cells, its planted answers, and two ways to ask what they lose.

`judge_many` is the real way, a kernel in a sandbox. `lost_directly` runs the same checks in this process, on
answers that we wrote ourselves, so that many seeds are cheap.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import nbformat
import numpy as np
import pytest
from labkit.expect import Mismatch
from nbformat import NotebookNode, v4

from autograder.authoring.names import loaded_names
from autograder.authoring.planted import Planted, read_planted
from autograder.checks import Cases, Check, Registry, derive_seed
from autograder.course import Course
from autograder.judging.environments import environment_for
from autograder.judging.judge import judge
from autograder.lab import Lab, load_lab

LAB = "lab02_formats"
PROJECT = Path(__file__).resolve().parents[2]
PLANTED_FILE = PROJECT / "solutions" / "planted" / f"{LAB}.py"
SECRET = b"a secret of the tests"
Losses = dict[str, str]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test each planted answer in turn, or each task with its planted answers."""
    answers = read_planted(PLANTED_FILE)
    if "planted" in metafunc.fixturenames:
        metafunc.parametrize("planted", answers, ids=lambda answer: f"{answer.task}-{answer.name}")
    if "planted_to_task" in metafunc.fixturenames:
        tasks = list(dict.fromkeys(answer.task for answer in answers))
        of_task = [[answer for answer in answers if answer.task == task] for task in tasks]
        metafunc.parametrize("planted_to_task", of_task, ids=tasks)


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
    return read_planted(PLANTED_FILE)


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
def with_answers() -> Callable[[NotebookNode, Mapping[str, str]], NotebookNode]:
    """A function that returns a notebook with some answer cells replaced."""
    return _with_answers


@pytest.fixture(scope="session")
def judge_many(course: Course, lab: Lab, core: NotebookNode) -> Callable[[list[Planted]], dict[str, Losses]]:
    """A function that returns, by name, what the solved lab loses with each of some answers to one task.

    One kernel serves them all: each has the whole lab in a namespace of its own, and its own copies of the checks
    that can see the task. The other checks call nothing that has changed; the solved lab passes them.
    """
    prefix = environment_for(course, lab.header.packages, LAB)

    def losses(answers: list[Planted]) -> dict[str, Losses]:
        entries = {answer: _checks_that_see(answer.task, lab, core) for answer in answers}
        copies = [
            replace(check, id=f"{check.id}__{i}") for i, checks in enumerate(entries.values()) for check in checks
        ]
        many = replace(lab, checks=_registry(copies), released=core)
        seeds = lambda check: derive_seed(SECRET, LAB, check, "tester", "")  # noqa: E731
        judged = judge(_notebook(core, entries), many, {}, seeds, prefix=prefix)
        lost: dict[str, Losses] = {answer.name: {} for answer in answers}
        for result in judged.results:
            id, _, number = result.id.rpartition("__")
            if not result.points:
                lost[answers[int(number)].name][id] = f"{result.status}: {result.message}"
        return lost

    return losses


@pytest.fixture(scope="session")
def lost_directly(lab: Lab, core: NotebookNode) -> Callable[[Mapping[str, str], int], Losses]:
    """A function that returns what the solved lab loses with some answers replaced, for any seed."""
    return lambda changed, seed: _losses(lab, _functions(_with_answers(core, changed)), seed)


def _checks_that_see(task: str, lab: Lab, core: NotebookNode) -> list[Check]:
    """Return the checks that call a task, or a task whose answer calls it, directly or not."""
    needed = {cell.id: loaded_names(cell.source) for cell in core.cells if _is_answer(cell)}
    seeing = {task}
    while more := {name for name, names in needed.items() if names & seeing} - seeing:
        seeing |= more
    return [check for check in lab.checks if seeing & set(check.names)]


def _registry(checks: list[Check]) -> Registry:
    registry = Registry()
    for check in checks:
        registry.add(check)
    return registry


def _notebook(core: NotebookNode, entries: Mapping[Planted, list[Check]]) -> NotebookNode:
    """Return a notebook that solves the lab once for each answer, each time followed by its checks."""
    cells = []
    for number, (answer, checks) in enumerate(entries.items()):
        lab = _with_answers(core, {answer.task: answer.source})
        text = "\n\n".join(cell.source for cell in lab.cells if cell.id == "imports" or _is_answer(cell))
        names = sorted({name for check in checks for name in check.names})
        run = f"names = {{}}\nexec({text!r}, names)\nglobals().update({{name: names[name] for name in {names}}})"
        cells.append(v4.new_code_cell(run))
        cells += [v4.new_code_cell(metadata={"nbgrader": {"grade_id": f"{check.id}__{number}"}}) for check in checks]
    return v4.new_notebook(cells=cells)


def _is_answer(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def _with_answers(notebook: NotebookNode, changed: Mapping[str, str]) -> NotebookNode:
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
        if cell.id == "imports" or _is_answer(cell):
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
