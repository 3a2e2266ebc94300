"""Checks of the section *debug*: repaired texts come back, and are run on cases drawn for this submission."""

from typing import Any

from labkit.expect import Mismatch, expect_values
from labkit.suspects.lab05 import SUSPECTS, make_case

from autograder.checks import Registry

from .inputs import N_ORDERS

checks = Registry()
check = checks.check

MAX_TEXT = 8192
N_CASES = 2

HINTS = {
    "missing_barrier": "two threads use one element of `found`: what must all have done before anyone goes on?",
    "partial_block": "which groups does the last block have, and which threads look for another one?",
    "lane_mix_up": "from which lane does a lane get its value, and does that one belong to the same group?",
    "swapped_nibbles": "the assertion says what should be true; which half is element 2j?",
}


def _repaired(name: str, words: str) -> None:
    """Register the check that a suspect is repaired: right values under several orders, and nothing forbidden."""

    def does_what_it_should(student: Any, cases: Any) -> None:
        code = student.repair(name)
        if not isinstance(code, str) or len(code) > MAX_TEXT:
            raise Mismatch("the repaired text of the kernel", f"a {type(code).__name__}")
        drawn = [make_case(name, cases.rng) for _ in range(N_CASES)]
        for run in cases.native.run(code, [case.launch for case in drawn], orders=N_ORDERS):
            for case in drawn:
                expect_values(run[case.output], case.expected, given=name)

    does_what_it_should.__doc__ = f"{name}: the repaired kernel {words}."
    check(
        f"repair-{name}",
        points=2,
        catches=f"leaves the mistake in {name}, or makes another",
        hint=HINTS[name],
        seconds=5,
    )(does_what_it_should)


_repaired("missing_barrier", "finds the largest magnitude of each row, in any order of its threads")
_repaired("partial_block", "multiplies every number, also of the last block, and reads nothing beyond the end")
_repaired("lane_mix_up", "finds the largest magnitude of each group, and no lane waits for an absent one")
_repaired("swapped_nibbles", "packs the first of two codes into the low half")

assert {entry.id for entry in checks} == {f"repair-{name}" for name in SUSPECTS}
