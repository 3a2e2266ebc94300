"""Checks of the section *debug*: engines drawn for this submission, lent, so that nothing of them is in the kernel."""

from typing import Any

from labkit.expect import Mismatch
from labkit.suspects.lab06 import DRAFTS, Engine, Fault, make_engine

from autograder.checks import Registry, as_member

checks = Registry()
check = checks.check

N_OWN, N_OTHER = 4, 1
"""Engines with a fault that must be named, and engines with each other fault that must not be taken for it: whoever
guesses passes with a chance of 6^-4."""

MAX_CALLS = 500
"""Calls of one engine, of which the reference makes 20: each computes a text."""

METHODS = ("prefill", "resume", "decode", "draft", "cached")
ATTRIBUTES = ("window", "kinds", "drafts", "vocabulary")

HINTS = {
    Fault.NONE: "what differs must differ by more than rounding, and what may differ must not count: new tokens' rows",
    Fault.WINDOW: "change one token and look at the newest row of layer 1: which ages make a difference?",
    Fault.START: "resume one request twice, each time after another one, and end right after the hit: windows forget",
    Fault.DRAFTS: "as many drafts as the engine is made for; then what it says must be what it would have said",
    Fault.GLOBAL: "the rows of the hit in a global layer, before and after a resume",
    Fault.SECOND: "the same short request, alone and after another one; this fault disturbs the other experiments",
}


def _names(fault: Fault, words: str) -> None:
    """Register the check that engines with a fault are told from all others."""

    def is_told_from_the_others(student: Any, cases: Any) -> None:
        drawn = [fault] * N_OWN + [other for other in Fault if other is not fault] * N_OTHER
        for index in cases.rng.permutation(len(drawn)):
            truth = drawn[index]
            engine = _draw(truth, cases, kind=int(index) if truth is fault else 0)
            lent = cases.lend(engine, methods=METHODS, attributes=ATTRIBUTES, max_calls=MAX_CALLS)
            got = as_member(Fault, student.diagnose(lent))
            if fault in (truth, got) and got is not truth:
                raise Mismatch(truth.name, got.name, f"an engine of {len(engine.kinds)} layers, W = {engine.window}")

    is_told_from_the_others.__doc__ = f"{fault.name}: every engine {words} is named, and no other one is."
    check(
        f"diagnose-{fault.name.lower()}",
        points=1,
        catches=f"takes another fault for {fault.name}, or misses it in some engines",
        hint=HINTS[fault],
        seconds=20,
    )(is_told_from_the_others)


_names(Fault.NONE, "without a fault")
_names(Fault.WINDOW, "whose window is one token too long or too short")
_names(Fault.START, "whose replay reads below its start")
_names(Fault.DRAFTS, "whose ring rejected drafts overwrite")
_names(Fault.GLOBAL, "whose replay writes global rows")
_names(Fault.SECOND, "whose second request reads the first one's ring")


def _draw(fault: Fault, cases: Any, kind: int) -> Engine:
    """Return an engine; the first of a fault, kind 0, and the second are of a kind that a short look misses."""
    while True:
        engine = make_engine(fault, cases.rng)
        spare = engine._length - (max(engine.window, engine._reads) - 1 + engine.drafts)
        if fault is Fault.DRAFTS and kind == 0 and (spare, engine.drafts) != (-1, max(DRAFTS)):
            continue  # fewer drafts than it is made for overwrite nothing
        if fault is Fault.WINDOW and kind < 2 and engine._reads - engine.window != (1, -1)[kind]:
            continue
        return engine
