"""What may be said of a kernel that gave no result.

What does not depend on inputs, a refusal or a compiler's words, is quoted whether the check is hidden or revealed. Of a
launch a revealed check quotes the runner's message. A hidden one says the kind of the first fault, in words of ours,
and the line of the student's own text: which of them, is all that a kernel can tell about inputs that it must not tell.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from autograder.errors import SandboxError
from autograder.native.gate import NotAttempted
from autograder.native.tokens import Refused

KINDS = {
    "out_of_bounds": "an access beyond the end of an array",
    "race": "a data race: two threads use one place without a barrier between them",
    "uninitialised": "a read of shared memory that no thread has written",
    "barrier": "a barrier that not all threads reach",
    "deadlock": "a warp call that some of its lanes never reach",
    "warp_call": "a warp call with lanes that do not take part",
    "misaligned": "an access at an address that is no multiple of its size",
    "bad_pointer": "a pointer that leads nowhere",
    "read_only": "a write to what the kernel may only read",
    "shift": "a shift by as many bits as the number has, or more",
    "float_to_integer": "a conversion of a number that does not fit",
    "division_by_zero": "a division by zero",
    "stack_overflow": "more local memory than a thread has",
    "assertion": "an assertion that does not hold",
    "trap": "a call of __trap",
    "missing_return": "a function that ends without a value",
    "argument": "parameters that are not those of the task",
    "launch": "a launch that the kernel does not allow",
    "compile": "a source that does not compile",
    "unsupported": "something that is not graded",
}
STATUSES = {"time_limit": "timed_out", "out_of_memory": "out_of_memory", "runner": "crashed", "unreadable": "crashed"}
MACHINE = {"missing_tool"}
MAX_LINES = 10
WORDS = {
    "timed_out": "took too long",
    "out_of_memory": "ran out of memory",
    "crashed": "ended without a result",
}


class NativeFault(BaseException):
    """A kernel without a result: a status, and what a hidden and a revealed check may say of it.

    Not an `Exception`: no check may catch it by accident.
    """

    def __init__(self, status: str, hidden: Sequence[str], revealed: Sequence[str] = (), task: str = "") -> None:
        super().__init__(status)
        self.status, self.hidden, self.revealed = status, list(hidden), list(revealed or hidden)
        self.task = task  # of a skeleton that was not attempted

    def lines(self, reveal: bool) -> list[str]:
        """Return the lines that a student may read."""
        return self.revealed if reveal else self.hidden


def of_refusal(refused: Refused, source: str) -> NativeFault:
    """Return the fault of a source that is not compiled, or not loaded."""
    if isinstance(refused, NotAttempted):
        return NativeFault("failed", [], task=refused.task)
    place = [_at(refused.line, source)] if refused.line else []
    return NativeFault("failed", [f"refused  {refused.rule}", *place])


def of_compilation(error: Mapping[str, Any], source: str) -> NativeFault:
    """Return the fault of a source that a compiler refuses; the words are the compiler's.

    Raises
    ------
    SandboxError
        If the machine cannot compile. What the compiler made of this one text is never the machine's failure.
    """
    kind, text = str(error.get("kind")), str(error.get("text"))
    if kind in ("runner", "time_limit"):  # the runner was there a moment ago, and no launch was asked for
        raise SandboxError(f"kernels: expected the compiler's verdict, got: {text}")
    _require_machine(kind, text)
    if kind in STATUSES:  # a source did this: the same sandbox has just built the runner without one
        return of_end(STATUSES[kind], text, "the compiler")
    return NativeFault("failed", [f"compiler {line}" for line in text.splitlines()[:MAX_LINES] if line.strip()])


def of_launch(error: Any, source: str) -> NativeFault:
    """Return the fault of a launch; everything in `error` may be forged."""
    said = error if isinstance(error, dict) else {}
    kind, text, line = str(said.get("kind")), str(said.get("text")), said.get("line")
    if kind in MACHINE:
        kind = "unreadable"  # the compiler was there a moment ago
    status = STATUSES.get(kind, "failed")
    words = WORDS.get(status) or KINDS.get(kind, "a fault")
    place = [_at(line, source)] if type(line) is int and 1 <= line <= source.count("\n") + 1 else []
    shown = [part for part in text.splitlines()[:MAX_LINES] if part.strip()]
    return NativeFault(
        status, [f"got      {words}", *place], [f"got      {kind}: {shown[0] if shown else words}", *shown[1:]]
    )


def of_end(status: str, why: str, who: str) -> NativeFault:
    """Return the fault of a sandbox that gave no answer."""
    return NativeFault(status, [f"got      {who} {WORDS[status]}"], [f"got      {who} {WORDS[status]}: {why}"])


def _at(line: int, source: str) -> str:
    lines = source.splitlines()
    text = lines[line - 1].strip() if 1 <= line <= len(lines) else ""
    return f"line {line:<4}{text}"


def _require_machine(kind: str, text: str) -> None:
    if kind in MACHINE:
        raise SandboxError(f"kernels: expected a machine that runs them, got: {text}")
