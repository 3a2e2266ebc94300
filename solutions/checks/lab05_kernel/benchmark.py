"""Checks of the section *benchmark*: what fewer bytes are worth, beside what takes its time whatever the bytes."""

from typing import Any

import numpy as np
from fp4kv.kernel_bytes import packed_bytes
from labkit.expect import expect_close

from autograder.checks import Registry

from .inputs import CLOSE, as_number

checks = Registry()
check = checks.check

HALF_BYTES = 2
LONG = 10**9
"""Tokens beside which a fixed time of a microsecond is less than 10^-6 of the whole."""


def _draw(cases: Any) -> tuple[int, int, float, float]:
    """Return KV heads, width, bytes per second, fixed seconds."""
    kv_heads, width = int(cases.rng.integers(1, 17)), 16 * int(cases.rng.integers(2, 17))
    return kv_heads, width, float(cases.rng.uniform(2e11, 4e12)), float(cases.rng.uniform(2e-6, 2e-5))


def _expect_speedup(student: Any, drawn: tuple[int, int, float, float], n_tokens: int, tolerance: float) -> None:
    kv_heads, width, bandwidth, fixed = drawn
    elements = 2 * n_tokens * kv_heads * width
    expected = (fixed + HALF_BYTES * elements / bandwidth) / (fixed + packed_bytes(elements) / bandwidth)
    got = as_number(student.decode_speedup(n_tokens, kv_heads, width, bandwidth, fixed), "a speedup")
    given = {"n_tokens": n_tokens, "kv_heads": kv_heads, "width": width, "bandwidth": bandwidth, "fixed": fixed}
    expect_close(got, expected, tolerance, given=given)


@check(
    "decode_speedup-long",
    points=1,
    catches="compares with 8 or 32 bits, forgets the scales, or turns the ratio round",
    hint="16 bits against 4.5: with a context long enough the fixed time no longer counts",
)
def a_long_context_gains_what_the_bits_say(student: Any, cases: Any) -> None:
    """Over a billion tokens the speedup is 16 / 4.5, whatever the fixed time."""
    for drawn in (_draw(cases) for _ in range(3)):
        _expect_speedup(student, drawn, LONG, 1e-3)


@check(
    "decode_speedup-none",
    points=1,
    catches="leaves the fixed time out of one of the two, or of both",
    hint="both decodes pay the fixed time: over no tokens they take equally long",
)
def without_a_context_nothing_is_gained(student: Any, cases: Any) -> None:
    """Over a single token there is next to nothing to gain."""
    for drawn in (_draw(cases) for _ in range(3)):
        _expect_speedup(student, drawn, 1, 0.02)


@check(
    "decode_speedup-between",
    points=1,
    catches="reads keys alone",
    hint="fixed + bytes / bandwidth for each of the two, keys and values",
)
def between_the_two_bytes_decide(student: Any, cases: Any) -> None:
    """Where bytes and fixed time cost alike, the speedup lies between."""
    for drawn in (_draw(cases) for _ in range(3)):
        kv_heads, width, bandwidth, fixed = drawn
        n_tokens = round(
            fixed * bandwidth / (2 * HALF_BYTES * kv_heads * width) * float(np.exp2(cases.rng.uniform(0, 2)))
        )
        _expect_speedup(student, drawn, n_tokens, CLOSE)
