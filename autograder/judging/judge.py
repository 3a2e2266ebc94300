"""Decide: cells are run once, then the checks ask, outside the kernel, what they compute.

*The curtain.* Every cell runs once, and its outputs are kept. Then the revealed checks run; their
values may be quoted. Then the outputs are closed, for this kernel and every later one, and the
hidden checks run: of what that kernel says only verdicts leave. What a hidden check gives away
is its status, one of the words below, and its time rounded up to a power of two: a few bits for each check and
submission, which no grader that reports a verdict can avoid. The time of a submission is told in whole seconds,
or it would tell what was rounded off. No value, message, exception, class
name, output or note of a student's code passes.

*Statuses.* `passed`: all that the check asked for. `failed`: a wrong value, an exception, or a
task that was not attempted. `skipped`: another task that the check `uses` was not attempted, so
nothing is known. `timed_out`, `crashed`, `out_of_memory`: a call, or the cell that should
have defined the function, ended so. `not_run`: the notebook's time or its kernels were used up before.
A check that crashes or runs out of memory is asked once more in a fresh kernel: what killed the
first may have been left there by another cell. So is one that fails where an earlier call was
interrupted.

*Trust.* What is only reported from inside proves nothing; a check compares values. Arguments
are copied into the kernel, so a function that changes its arguments changes nothing here; a check
that cares asks for them back: `value, arguments = student.encode_e2m1.and_arguments(x)`.

*Loans.* Where a check must know what was done and not only what came of it, it lends an object of its own
(`autograder.judging.lending`): what that object recorded is known here.

*Kernels.* The text of a kernel comes back as data and is compiled and run in sandboxes of its own
(`autograder.native`), which see neither the student's kernel nor anything of the judge's but the inputs of one launch.
A refusal and a compiler's words depend on the text alone, so every check quotes them. Of a fault in a launch a hidden
check says its kind and the line of the student's text, which of its lines: a dozen bits more than a status.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from labkit.expect import Mismatch, Raised
from nbformat import NotebookNode

from autograder.checks import Cases, Check
from autograder.errors import AutograderError, CourseError, UsageError
from autograder.judging import verdict
from autograder.judging.kernel import CallEnded, NotDefined, NoValue
from autograder.judging.messages import plain
from autograder.judging.performance import Performance, steps_of
from autograder.lab import Lab
from autograder.native.faults import NativeFault
from autograder.outcome import CheckResult

SANDBOXES = ("bubblewrap", "none")
ASKED_AGAIN = ("crashed", "out_of_memory")
SUSPICIOUS = re.compile(
    r"autograder|nbgrader|gradebook|fp4kv|ml_dtypes|judge_request|shell_handlers|run_cell|showtraceback"
    r"|/proc/|os\._exit|ctypes|socket\b|__eq__|ast_transformers|input_transformers"
)


@dataclass
class Judgement:
    """Everything that is known about a notebook after its last check.

    `outputs` are nbformat's output dictionaries by cell index: plain data, bounded, not yet
    sanitised. `notes` say which cells were lost; `suspicions` are for a person and cost nothing.
    """

    results: list[CheckResult] = field(default_factory=list)
    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    suspicions: list[str] = field(default_factory=list)
    seconds: float = 0.0


def judge(
    notebook: NotebookNode,
    lab: Lab,
    files: Mapping[str, bytes],
    seeds: Callable[[Check], bytes],
    *,
    prefix: Path,
    sandbox: str = "bubblewrap",
) -> Judgement:
    """Return the judgement of a notebook whose cells carry nbgrader's metadata.

    Parameters
    ----------
    files: what lies beside the notebook, by relative name.
    seeds: the seed of a check's inputs for this submission.
    prefix: the Python environment that the sandbox shows.
    sandbox: "none" runs the notebook unprotected: for one's own notebook only.

    Raises
    ------
    SandboxError
        If the machine failed: nothing is known about the submission.
    CourseError
        If a check itself is broken.
    SubmissionError
        If the files cannot be put into the sandbox.
    """
    if sandbox not in SANDBOXES:
        raise UsageError(f"sandbox: expected one of {', '.join(SANDBOXES)}, got {sandbox!r}")
    begun = time.monotonic()
    performance = Performance(steps_of(notebook, lab), files, lab.header.limits, prefix, sandbox)
    judgement = Judgement(outputs=performance.outputs, notes=performance.notes, suspicions=suspicions_of(notebook, lab))
    try:
        performance.perform()
        found = {check.id: _judge_check(check, performance, seeds, judgement) for check in lab.checks if check.reveal}
        performance.close()
        found |= {
            check.id: _judge_check(check, performance, seeds, judgement) for check in lab.checks if not check.reveal
        }
    finally:
        performance.drop()
    judgement.results = [found[check.id] for check in lab.checks]
    judgement.seconds = verdict.whole_seconds(time.monotonic() - begun)
    return judgement


def suspicions_of(notebook: NotebookNode, lab: Lab) -> list[str]:
    """Return which of the student's cells name something that no answer needs."""
    found = []
    allowed = {package.replace("-", "_") for package in lab.header.packages}
    for index, cell in enumerate(notebook.cells):
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        words = sorted(set(SUSPICIOUS.findall(cell.source)) - allowed) if cell.cell_type == "code" else []
        if words and grade_id not in lab.checks:
            found.append(f"cell {index + 1} mentions {', '.join(words)}")
    return found


class Student:
    """What a check calls: `student.encode_e2m1(x)` runs in the kernel and returns data."""

    # A kernel's text: what a person writes in a lab is a few thousand characters.
    MAX_TEXT = 64 * 1024

    def __init__(self, check: Check, performance: Performance) -> None:
        self._check, self._performance = check, performance
        self._last_name, self._last_call, self._n_answers = check.task, f"{check.task}(…)", 0
        self.changed_texts: set[str] = set()  # constants that an earlier check saw as another text

    def __getattr__(self, name: str) -> "Function":
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._check.names:
            raise CourseError(
                f"{self._check.id}: expected calls of {self._check.names} only, got {name}; name it in uses="
            )
        return Function(self, name)

    def text(self, constant: str) -> str:
        """Return a constant of the student's notebook, which must be a text."""
        if constant not in self._check.constants:
            raise CourseError(f"{self._check.id}: expected one of {self._check.constants}, got {constant}")
        self._last_name, self._last_call = constant.lower(), constant
        seconds = self._performance.limits.call_seconds
        value = self._performance.call(seconds, op="text", check=self._check.id, name=constant)
        self._n_answers += 1
        if type(value) is not str or len(value) > self.MAX_TEXT:
            got = f"{len(value)} characters" if type(value) is str else f"an object of type {type(value).__name__}"
            raise Mismatch(f"{constant} to be a text of at most {self.MAX_TEXT} characters", got)
        self.changed_texts |= {constant} if self._performance.texts.setdefault(constant, value) != value else set()
        return value

    def _ask(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], with_args: bool) -> Any:
        self._last_name, self._last_call = name, verdict.show_call(name, args, kwargs)
        seconds = self._check.seconds or self._performance.limits.call_seconds
        request = {"op": "call", "check": self._check.id, "name": name, "args": list(args), "kwargs": kwargs}
        value = self._performance.call(seconds, **request, with_args=with_args)
        self._n_answers += 1
        return value


@dataclass(frozen=True)
class Function:
    """One function of the student's notebook."""

    _student: Student
    _name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with copies of the arguments and return its value as plain data."""
        return self._student._ask(self._name, args, kwargs, with_args=False)

    def and_arguments(self, *args: Any, **kwargs: Any) -> Any:
        """Return (value, arguments as they are after the call)."""
        return self._student._ask(self._name, args, kwargs, with_args=True)


def _judge_check(
    check: Check, performance: Performance, seeds: Callable[[Check], bytes], judgement: Judgement
) -> CheckResult:
    begun, doubtful = time.monotonic(), performance.interrupted
    status, lines = _ask_check(check, performance, seeds, judgement)
    if status in ASKED_AGAIN or (doubtful and status not in ("passed", "timed_out")):
        performance.drop()
        status, lines = _ask_check(check, performance, seeds, judgement)
        if status in ASKED_AGAIN:
            performance.drop()
    return verdict.result(check, status, lines, time.monotonic() - begun)


def _ask_check(
    check: Check, performance: Performance, seeds: Callable[[Check], bytes], judgement: Judgement
) -> tuple[str, list[str]]:
    """Run a check once and return its status and what may be said about it."""
    student, seed = Student(check, performance), seeds(check)
    orders = np.random.default_rng(int.from_bytes(seed, "big") + 1)
    seconds = check.seconds or performance.limits.call_seconds
    cases = Cases(seed, performance.native.for_check(orders, seconds))
    try:
        check.run(student, cases)
    except NativeFault as fault:
        return _when_native(check, fault)
    except Mismatch as mismatch:
        return "failed", verdict.lines_of_mismatch(check, mismatch)
    except CallEnded as ended:
        return ended.status, verdict.lines_of_loss(check, student._last_call, ended.status, str(ended))
    except Raised as raised:
        return _when_raised(check, student, raised)
    except NotDefined:
        return _when_missing(check, student, performance)
    except NoValue as none:
        return "failed", [f"got      {none}"] if check.reveal else [verdict.HIDDEN_TEXTS["failed"]]
    except AutograderError:
        raise
    except Exception as error:
        return _when_broken(check, student, error, judgement)
    finally:
        judgement.suspicions += [
            f"{check.id}: {constant} is another text than in an earlier check" for constant in student.changed_texts
        ]
        judgement.suspicions += [f"{check.id}: {text}" for loan in cases.loans for text in sorted(loan.suspicions)]
    return "passed", []


def _when_raised(check: Check, student: Student, raised: Raised) -> tuple[str, list[str]]:
    if "NotImplementedError" in raised.kinds:
        return _when_not_attempted(check, student._last_name)
    status = "out_of_memory" if "MemoryError" in raised.kinds else "failed"
    return status, verdict.lines_of_error(check, student._last_call, status, raised)


def _when_not_attempted(check: Check, name: str) -> tuple[str, list[str]]:
    if name == check.task:
        return "failed", [f"not attempted: {name}, or a task that it calls, still raises NotImplementedError"]
    return "skipped", [f"needs {name}, which was not attempted"]


def _when_native(check: Check, fault: NativeFault) -> tuple[str, list[str]]:
    """Say what is wrong with a kernel, or that it is still the skeleton."""
    if not fault.task:
        return fault.status, fault.lines(check.reveal)
    if fault.task == check.task:
        return "failed", [f"not attempted: the loop of {fault.task} is still to be written"]
    return "skipped", [f"needs {plain(fault.task, 80)}, which was not attempted"]


def _when_missing(check: Check, student: Student, performance: Performance) -> tuple[str, list[str]]:
    """Say why a function is not there: its cell may have been lost."""
    name = student._last_name
    fault = performance.fault_of(name)
    if fault:
        return fault, [f"{name} is not defined: its cell {verdict.CELL_WORDS[fault]}"]
    if name == check.task:
        return "failed", [f"not attempted: {name} is not defined before this check"]
    return "skipped", [f"needs {name}, which is not defined before this check"]


def _when_broken(check: Check, student: Student, error: Exception, judgement: Judgement) -> tuple[str, list[str]]:
    """Blame the value if the check had one; a check that fails before any value is broken itself."""
    if not student._n_answers:
        raise CourseError(f"{check.id}: expected the check to run, got {type(error).__name__}: {error}") from error
    judgement.suspicions.append(f"{check.id}: the check could not read a value ({type(error).__name__}); look at both")
    return "failed", [f"{student._last_name} returned something of another kind than the check expects"]
