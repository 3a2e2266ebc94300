"""What a student reads of a check: task and property, then as much as the check may reveal.

Hidden checks: only texts of ours, chosen by status. Nothing that the student's code gave back
is quoted, not even the name of an exception.
"""

import math

from labkit.expect import Mismatch, Raised, show_given

from autograder.checks import Check
from autograder.judging.messages import plain
from autograder.outcome import CheckResult

LINE_LIMIT, MAX_LINES = 300, 12
HIDDEN_TEXTS = {
    "failed": "a hidden case gave another result than expected",
    "timed_out": "a hidden case took too long",
    "crashed": "a hidden case ended the kernel",
    "out_of_memory": "a hidden case ran out of memory",
}
CELL_WORDS = {
    "timed_out": "took too long",
    "crashed": "ended the kernel",
    "out_of_memory": "ran out of memory",
    "not_run": "was not run",
}


def result(check: Check, status: str, lines: list[str], seconds: float) -> CheckResult:
    """Return the result of a check with the message that a student may read."""
    points = check.points if status == "passed" else 0.0
    return CheckResult(
        check.id, points, check.points, status, message(check, status, lines), shown_seconds(check, seconds)
    )


def message(check: Check, status: str, lines: list[str]) -> str:
    """Return headline, lines and hint; nothing at all for a check that passed."""
    if status == "passed":
        return ""
    headline = f"{check.task}: {check.title}"
    hint = [f"hint     {check.hint}"] if check.hint and not any(line.startswith("hint ") for line in lines) else []
    return "\n".join([headline, *(plain(line, LINE_LIMIT) for line in lines[:MAX_LINES]), *hint])


def shown_seconds(check: Check, seconds: float) -> float:
    """Return the time of a check; of a hidden one only the next power of two.

    A function can spend its time according to what it was given, so the time is a way out of
    the sandbox. What is left of it are two or three bits for each check, as with its status.
    """
    if check.reveal:
        return round(seconds, 3)
    return float(2 ** max(0, math.ceil(math.log2(max(seconds, 1.0)))))


def whole_seconds(seconds: float) -> float:
    """Return the time of a whole submission, rounded up: hidden checks are part of it.

    >>> whole_seconds(3.2)
    4.0
    """
    return float(math.ceil(seconds))


def lines_of_mismatch(check: Check, mismatch: Mismatch) -> list[str]:
    """Return given, expected and got, if the check may reveal them."""
    return mismatch.lines() if check.reveal else [HIDDEN_TEXTS["failed"]]


def lines_of_error(check: Check, call: str, status: str, error: Raised) -> list[str]:
    """Return the call and what it raised, if the check may reveal them."""
    if not check.reveal:
        return [HIDDEN_TEXTS[status]]
    return [f"given    {call}", f"got      {error}"]


def lines_of_loss(check: Check, call: str, status: str, text: str) -> list[str]:
    """Return which call did not come back and why."""
    if status == "not_run":
        return [f"not run: {text}"]
    return [f"given    {call}", f"got      {text}"] if check.reveal else [HIDDEN_TEXTS[status]]


def show_call(name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> str:
    """Return a call as a person would write it, with short arguments."""
    parts = [show_given(value) for value in args] + [f"{key}={show_given(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(parts)})"
