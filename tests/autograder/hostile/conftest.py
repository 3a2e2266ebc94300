"""A small lab of two tasks, a way to judge any cells against it, and proof that nothing is left.

`double` is the task that is attacked, `total` the one whose score must not change.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from labkit.expect import expect_values
from nbformat import NotebookNode, v4

from autograder.checks import CheckFunction, Registry
from autograder.course import Course
from autograder.judging.environments import environment_for
from autograder.judging.judge import Judgement, judge
from autograder.lab import Header, Lab
from autograder.limits import Limits, MiB
from autograder.outcome import CheckResult
from autograder.sandbox import Room
from autograder.sandbox.groups import find

RIGHT_DOUBLE = "def double(x):\n    return 2 * x\n"
WRONG_DOUBLE = "def double(x):\n    return 3 * x\n"
RIGHT_TOTAL = "def total(x):\n    return float(np.sum(x))\n"
PREFIX_VARIABLE = "AUTOGRADER_TEST_PREFIX"
HIDDEN_NUMBER = 27182818.0  # a hidden input, which must never be seen outside

QUICK = Limits(
    memory_bytes=1024 * MiB,
    disk_bytes=16 * MiB,
    file_bytes=16 * MiB,
    files=500,
    processes=64,
    cell_seconds=2.5,
    call_seconds=1.5,
    notebook_seconds=60,
    output_bytes=256 * 1024,
)
ONE_CHECK = Limits(notebook_seconds=90, call_seconds=30)
PATIENT = replace(QUICK, cell_seconds=60, call_seconds=30)  # where nothing waits for a limit of time

checks = Registry()


@checks.check("double-shown", points=1, catches="does not double", hint="twice x", reveal=True)
def doubles(student, cases):
    """Each number is doubled."""
    x = cases.rng.integers(1, 9, 4).astype(np.float32)
    expect_values(student.double(x), 2 * x, given=x)


@checks.check("double-hidden", points=2, catches="does not double", hint="also large numbers")
def doubles_large_numbers(student, cases):
    """Large numbers are doubled."""
    x = np.array([HIDDEN_NUMBER, -HIDDEN_NUMBER, 1.0])
    expect_values(student.double(x), 2 * x, given=x)


@checks.check("total-shown", points=1, catches="does not add", reveal=True)
def adds(student, cases):
    """The sum of the numbers."""
    x = cases.rng.integers(1, 9, 4).astype(np.float64)
    expect_values(student.total(x), float(np.sum(x)), given=x)


@checks.check("total-hidden", points=2, catches="does not add")
def adds_many(student, cases):
    """The sum of many numbers."""
    x = cases.rng.integers(-9, 9, 1000).astype(np.float64)
    expect_values(student.total(x), float(np.sum(x)), given=x)


@dataclass
class Trial:
    """A judgement with short ways to ask for its parts."""

    judgement: Judgement
    notebook: NotebookNode
    text: str = field(init=False)

    def __post_init__(self) -> None:
        self.status = {result.id: result.status for result in self.judgement.results}
        self.message = {result.id: result.message for result in self.judgement.results}
        self.text = repr(self.judgement)

    def points(self, task: str) -> float:
        """Return what a task has earned."""
        return sum(result.points for result in self.judgement.results if result.id.startswith(f"{task}-"))

    def printed(self, index: int) -> str:
        """Return what a cell wrote to stdout and stderr."""
        outputs = self.judgement.outputs.get(index, [])
        return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def notebook_of(double: str, total: str, before: str, between: str, after: str) -> NotebookNode:
    """Return a notebook: 0 imports, 1 `before`, 2 double, 3-4 checks, 5 `between`, 6 total, 7-8 checks, 9 `after`."""
    cells = [v4.new_code_cell("import numpy as np"), v4.new_code_cell(before), _answer("double", double)]
    cells += [_check("double-shown"), _check("double-hidden"), v4.new_code_cell(between), _answer("total", total)]
    cells += [_check("total-shown"), _check("total-hidden"), v4.new_code_cell(after)]
    return v4.new_notebook(cells=cells)


def _answer(task: str, source: str) -> NotebookNode:
    metadata = {"nbgrader": {"grade_id": task, "grade": False, "solution": True, "locked": False}}
    return v4.new_code_cell(source, metadata=metadata)


def _check(id: str) -> NotebookNode:
    metadata = {"nbgrader": {"grade_id": id, "grade": True, "solution": False, "locked": True, "points": 1}}
    return v4.new_code_cell("raise RuntimeError('a check cell is not run')", metadata=metadata)


@pytest.fixture(scope="session")
def prefix(project: Path) -> Path:
    """The environment that lab 2's allow-list asks for; built as root when the suite runs again as a user."""
    if PREFIX_VARIABLE in os.environ:
        return Path(os.environ[PREFIX_VARIABLE])
    return environment_for(Course(project / "course", project), ("numpy", "matplotlib", "jaxtyping"), "lab02_formats")


@pytest.fixture
def try_cells(prefix: Path, nothing_left: None) -> Callable[..., Trial]:
    """Judge a notebook with the given cells; afterwards nothing of it may be left on the machine."""

    def run(
        double: str = RIGHT_DOUBLE,
        total: str = RIGHT_TOTAL,
        *,
        before: str = "",
        between: str = "",
        after: str = "",
        files: dict[str, bytes] | None = None,
        patient: bool = True,
        limits: Limits | None = None,
        sandbox: str = "bubblewrap",
    ) -> Trial:
        header = Header("Small lab", ("numpy",), 5, 5.0, limits or (PATIENT if patient else QUICK))
        lab = Lab("lab02_small", header, checks, v4.new_notebook(), {})
        notebook = notebook_of(double, total, before, between, after)
        found = judge(notebook, lab, files or {}, lambda check: check.id.encode(), prefix=prefix, sandbox=sandbox)
        return Trial(found, notebook)

    return run


@pytest.fixture
def ask(prefix: Path, nothing_left: None) -> Callable[..., tuple[CheckResult, Judgement]]:
    """Judge one check, a function `(student, cases)`, or several, against the code of one cell."""

    def run(
        check: CheckFunction,
        source: str,
        *others: CheckFunction,
        uses: tuple[str, ...] = (),
        reveal: bool = True,
        limits: Limits = ONE_CHECK,
        **options: Any,
    ) -> tuple[CheckResult, Judgement]:
        registry = Registry()
        for name, asked in zip(("property", "second", "third"), (check, *others), strict=False):
            asked.__doc__ = asked.__doc__ or "What is asked."
            registry.check(f"task-{name}", points=1, catches="fails", uses=uses, reveal=reveal)(asked)
        lab = Lab("lab02_small", Header("Small lab", ("numpy",), 5, 5.0, limits), registry, v4.new_notebook(), {})
        notebook = v4.new_notebook(cells=[v4.new_code_cell("import numpy as np"), v4.new_code_cell(source)])
        options = {"files": {}, "seeds": lambda check: b"seed", "prefix": prefix} | options
        judgement = judge(notebook, lab, options.pop("files"), options.pop("seeds"), **options)
        return judgement.results[0], judgement

    return run


@dataclass
class Trace:
    """What one room would leave behind."""

    folder: Path
    pid_namespace: int = -1  # held open, so that its number cannot be given to another sandbox


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Watch every room that a test opens; at its end no process, file, group, mount or thread is left."""
    traces: list[Trace] = []
    start = Room.start

    def watched_start(room: Room, *arguments: object) -> object:
        traces.append(Trace(room.folder))
        process = start(room, *arguments)
        if room.walls:
            traces[-1].pid_namespace = os.open(f"/proc/{room.init_pid}/ns/pid", os.O_RDONLY)
        return process

    monkeypatch.setattr(Room, "start", watched_start)
    home = Path(tempfile.mkdtemp(prefix="at-", dir="/tmp"))  # short: sockets have long names
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    threads, descriptors = set(threading.enumerate()), _open_descriptors()
    children = set(psutil.Process().children(recursive=True))  # other tests' helpers live as long as the test process
    yield
    held = [trace.pid_namespace for trace in traces if trace.pid_namespace >= 0]
    members = _members({os.fstat(namespace).st_ino for namespace in held})
    for namespace in held:
        os.close(namespace)
    left = [str(path) for path in home.iterdir()]
    shutil.rmtree(home)
    assert not left, "files left behind"
    assert not [str(trace.folder) for trace in traces if find(trace.folder.name).folders], "control groups left behind"
    assert not members, "processes left behind"
    assert not set(psutil.Process().children(recursive=True)) - children, "children left behind"
    assert not [trace for trace in traces if str(trace.folder) in Path("/proc/self/mountinfo").read_text()]
    assert not {thread.name for thread in set(threading.enumerate()) - threads if "watchdog" in thread.name}
    assert _open_descriptors() <= descriptors + 4, "descriptors left open"  # an event loop or two may have been made


def _members(namespaces: set[int]) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "ns/pid").stat().st_ino in namespaces and not _is_zombie(process):
                found.append(int(process.name))
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            continue
    return found


def _is_zombie(process: Path) -> bool:
    """A reaper that is slow leaves the name of a dead process for a while."""
    return (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
