"""The labs as their tests need them: cells, planted answers, and two ways to ask what an answer loses.

`judge_many` is the real way, a kernel in a sandbox. `lost_directly` runs the same checks in this process, on
answers that we wrote ourselves, so that many seeds are cheap.
"""

import copy
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import nbformat
import numpy as np
import pytest
from labkit.expect import Mismatch, Raised
from nbformat import NotebookNode, v4

from autograder.authoring.names import loaded_names
from autograder.authoring.planted import Planted, read_planted
from autograder.checks import Cases, Check, Loan, Registry, derive_seed
from autograder.course import Course
from autograder.inside import values
from autograder.inside.lent import KNOWN_PACKAGE, StandIn, stand_in
from autograder.inside.native import perform
from autograder.inside.port import find_type
from autograder.judging.environments import environment_for
from autograder.judging.judge import judge
from autograder.judging.lending import Lender
from autograder.lab import Lab, load_lab
from autograder.limits import Limits
from autograder.native import faults
from autograder.native.faults import NativeFault
from autograder.native.gate import admit
from autograder.native.runs import Native
from autograder.native.tokens import Refused

PROJECT = Path(__file__).resolve().parents[2]
PLANTED = PROJECT / "solutions" / "planted"
LABS = sorted(path.stem for path in PLANTED.glob("lab*.py"))
SECRET = b"a secret of the tests"
Losses = dict[str, str]
KERNEL_SEEDS, KERNELS_JUDGED, ANSWERS_JUDGED = 3, 4, 6


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test each lab in turn, each planted answer of each, or each task with its planted answers."""
    answers = [(name, answer) for name in LABS for answer in read_planted(PLANTED / f"{name}.py")]
    if "planted" in metafunc.fixturenames:
        ids = [f"{name[:5]}-{answer.task}-{answer.name}" for name, answer in answers]
        metafunc.parametrize(("bench", "planted"), answers, ids=ids, indirect=["bench"], scope="session")
    elif "planted_to_task" in metafunc.fixturenames:
        tasks = list(dict.fromkeys((name, answer.task) for name, answer in answers))
        of_task = [
            (name, [answer for other, answer in answers if (other, answer.task) == (name, task)])
            for name, task in tasks
        ]
        ids = [f"{name[:5]}-{task}" for name, task in tasks]
        metafunc.parametrize(("bench", "planted_to_task"), of_task, ids=ids, indirect=["bench"], scope="session")
    elif "bench" in metafunc.fixturenames:
        metafunc.parametrize("bench", LABS, indirect=True, scope="session")


@dataclass(frozen=True)
class Bench:
    """One lab, and what can be asked of it."""

    course: Course
    name: str
    lab: Lab = field(hash=False)

    @cached_property
    def answers(self) -> list[Planted]:
        """Every planted answer."""
        return read_planted(PLANTED / f"{self.name}.py")

    @cached_property
    def solved(self) -> NotebookNode:
        """The solved notebook."""
        return nbformat.read(self.course.solutions / self.name / f"{self.name}.ipynb", 4)

    @cached_property
    def core(self) -> NotebookNode:
        """The solved notebook without its prose and its free cells: imports, answers, checks."""
        notebook = copy.deepcopy(self.solved)
        notebook.cells = [cell for cell in notebook.cells if cell.id == "imports" or "nbgrader" in cell.metadata]
        return notebook

    @cached_property
    def full_marks(self) -> float:
        """The points of all checks."""
        return sum(check.points for check in self.lab.checks)

    def with_answers(self, notebook: NotebookNode, changed: Mapping[str, str]) -> NotebookNode:
        """Return a notebook with some answer cells replaced."""
        replaced = copy.deepcopy(notebook)
        cells = {cell.id: cell for cell in replaced.cells}
        for task, source in changed.items():
            cells[task].source = source
        return replaced

    def judge_many(self, answers: list[Planted]) -> dict[str, Losses]:
        """Return, by name, what the solved lab loses with each of some answers to one task.

        One kernel serves them all: each has the whole lab in a namespace of its own, and its own copies of the checks
        that can see the task. The other checks call nothing that has changed; the solved lab passes them.
        """
        prefix = environment_for(self.course, self.lab.header.packages, self.name)
        entries = {answer: self.checks_that_see([answer.task]) for answer in answers}
        copies = [
            replace(check, id=f"{check.id}__{i}") for i, checks in enumerate(entries.values()) for check in checks
        ]
        many = replace(self.lab, checks=_registry(copies), released=self.core)
        seeds = lambda check: derive_seed(SECRET, self.name, check, "tester", "")  # noqa: E731
        judged = judge(self._notebook(entries), many, {}, seeds, prefix=prefix)
        lost: dict[str, Losses] = {answer.name: {} for answer in answers}
        for result in judged.results:
            id, _, number = result.id.rpartition("__")
            if not result.points:
                lost[answers[int(number)].name][id] = f"{result.status}: {result.message}"
        return lost

    def lost_directly(self, changed: Mapping[str, str], seed: int) -> Losses:
        """Return what the solved lab loses with some answers replaced, of the checks that can see them; all without.

        A check that runs kernels takes seconds, so it has few seeds: after those, what it said with one of them stands.
        """
        checks = self.checks_that_see(changed) if changed else list(self.lab.checks)
        student = _functions(self.with_answers(self.core, changed))
        answers = repr(sorted(changed.items()))
        lost: Losses = {}
        for check in checks:
            key = (answers, check.id, seed % KERNEL_SEEDS)
            found, has_run_kernels = self.said_of_kernels.get(key) or _losses(check, student, seed)
            if has_run_kernels:
                self.said_of_kernels[key] = found, True
            lost |= found
        return lost

    def some_of(self, answers: list[Planted]) -> list[Planted]:
        """Return the right answers to a task and so many wrong ones, from first to last, as there is time for.

        `lost_directly` asks the same checks of every answer, kernels through the same gate. A sandbox is slow: of
        kernels, which must be compiled there, it sees few, and of other answers few in CI.
        """
        is_kernel = f"{answers[0].task.upper()} = " in answers[0].source
        most = KERNELS_JUDGED if is_kernel else ANSWERS_JUDGED if os.environ.get("CI") else len(answers)
        wrong = [answer for answer in answers if not answer.is_right]
        some = wrong[:: -(-len(wrong) // most)]
        return [*some, *(answer for answer in answers if answer.is_right)]

    @cached_property
    def said_of_kernels(self) -> dict[tuple[str, str, int], tuple[Losses, bool]]:
        """What checks that run kernels have said, by the answers, the check and the seed."""
        return {}

    def checks_that_see(self, tasks: Iterable[str]) -> list[Check]:
        """Return the checks that call one of the tasks, or a task whose answer calls it, directly or not."""
        needed = {cell.id: loaded_names(cell.source) for cell in self.core.cells if _is_answer(cell)}
        seeing = set(tasks)
        while more := {name for name, names in needed.items() if names & seeing} - seeing:
            seeing |= more
        return [check for check in self.lab.checks if seeing & set(check.names)]

    def _notebook(self, entries: Mapping[Planted, list[Check]]) -> NotebookNode:
        """Return a notebook that solves the lab once for each answer, each time followed by its checks."""
        cells = []
        for number, (answer, checks) in enumerate(entries.items()):
            lab = self.with_answers(self.core, {answer.task: answer.source})
            text = "\n\n".join(cell.source for cell in lab.cells if cell.id == "imports" or _is_answer(cell))
            wanted = {name for check in checks for name in (*check.names, *check.constants)}
            run = f"names = {{}}\nexec({text!r}, names)\n"
            run += f"globals().update({{name: names[name] for name in {sorted(wanted)} if name in names}})"
            cells.append(v4.new_code_cell(run))
            cells += [
                v4.new_code_cell(metadata={"nbgrader": {"grade_id": f"{check.id}__{number}"}}) for check in checks
            ]
        return v4.new_notebook(cells=cells)


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A course of this project that has released nothing yet: the project's own notebooks count."""
    return Course(tmp_path_factory.mktemp("course"), PROJECT)


@pytest.fixture(scope="session")
def bench(course: Course, request: pytest.FixtureRequest) -> Bench:
    """One lab of the course."""
    return Bench(course, request.param, load_lab(course, request.param))


def _registry(checks: list[Check]) -> Registry:
    registry = Registry()
    for check in checks:
        registry.add(check)
    return registry


def _is_answer(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


@dataclass(frozen=True)
class _Function:
    """A function that is called in this process, on copies of its arguments as the judge's are.

    What is lent is a stand-in as in the sandbox, whose calls cross as the same bytes; the loan ends with the call.
    """

    function: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.and_arguments(*args, **kwargs)[0]

    def and_arguments(self, *args: Any, **kwargs: Any) -> Any:
        lender = Lender()
        stand_ins = {id(loan): _lent(loan, lender) for loan in _loans_in([args, kwargs])}
        given, named = copy.deepcopy((args, kwargs), stand_ins)
        try:
            with np.errstate(all="ignore"):  # a warning costs nothing in the judge either
                return self.function(*given, **named), given
        except Exception as error:  # as the judge hears of it
            kinds = tuple(kind.__name__ for kind in type(error).__mro__)
            raise Raised(kinds, str(error)) from error
        finally:
            lender.loans.clear()


def _loans_in(value: Any) -> Iterator[Loan]:
    if isinstance(value, Loan):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _loans_in(part)


def _lent(loan: Loan, lender: Lender) -> StandIn:
    terms = values.encode(lender.terms_of(loan), known_package=KNOWN_PACKAGE)
    return stand_in(values.decode(terms, find_type=find_type), lender.answer, find_type)


@pytest.fixture
def called_here() -> Callable[[Callable[..., Any]], _Function]:
    """Wrap a function as `lost_directly` calls those of an answer."""
    return _Function


def _functions(notebook: NotebookNode) -> SimpleNamespace:
    names: dict[str, Any] = {}
    for cell in notebook.cells:
        if cell.id == "imports" or _is_answer(cell):
            exec(compile(cell.source, cell.id, "exec"), names)
    functions = {name: _Function(thing) for name, thing in names.items() if isinstance(thing, FunctionType)}
    return SimpleNamespace(**functions, text=names.__getitem__)


class _NativeHere(Native):
    """Runs kernels that we wrote ourselves in this process's labkit: the gate is as in the judge, walls are none."""

    has_run = False

    def _compiled(self, source: str, kernels: tuple[str, ...], checked: bool) -> dict[str, bytes]:
        self.has_run = True
        try:
            admit(source)
        except Refused as refused:
            raise faults.of_refusal(refused, source) from None
        return {}

    def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        return perform(dict(request))


def _losses(check: Check, student: SimpleNamespace, seed: int) -> tuple[Losses, bool]:
    """Return what a check says, and whether it ran kernels."""
    native = _NativeHere(Path(), Limits(), "none", lambda: math.inf, check.seconds or Limits().call_seconds)
    native.rng = np.random.default_rng(seed)
    try:
        check.run(student, Cases(f"{seed} {check.id}".encode(), native))
    except (Mismatch, Raised) as error:
        return {check.id: f"{type(error).__name__}: {error}"}, native.has_run
    except NativeFault as fault:
        return {check.id: f"{fault.status}: {' '.join(fault.revealed)}"}, native.has_run
    return {}, native.has_run
