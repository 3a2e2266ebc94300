"""Checks of the section *derive*: what can be found on paper."""

from typing import Any

import numpy as np
from fp4kv import round_to_e4m3
from labkit.expect import Mismatch, expect_close, expect_values, plain_array
from labkit.formats import E4M3_MAX, E4M3_MIN_SUBNORMAL

from autograder.checks import Registry

from .inputs import FLOAT32_ULP, as_number

checks = Registry()
check = checks.check

N_TOKENS_WITHOUT_MASK = 1 << 30
"""So many tokens that what is stored once, up to 32 bits per channel, is less than 2^-24 bit per element."""


@check(
    "flush_limit-scale",
    points=2,
    catches="takes amax / 24 without rounding the scale, or half the smallest step for a quarter of the scale",
    hint="first the scale as it is stored, E4M3(amax / 6); then the tie between 0 and 0.5, times that scale",
)
def the_limit_is_a_quarter_of_the_stored_scale(student: Any, cases: Any) -> None:
    """The limit is a quarter of the scale that is stored, and the limit itself becomes zero."""
    mantissas = cases.rng.integers(8, 16, 8) + cases.rng.permutation([-0.4, -0.2, 0.3, 0.45] * 2)
    for amax in map(float, [*(6 * mantissas * 2.0 ** cases.rng.integers(-7, 5, 8)), 100.0, 24.0, 23.0]):
        expect_values(student.flush_limit(amax), _limit(amax), given=amax, any_width=True)


@check(
    "flush_limit-range",
    points=1,
    catches="lets the scale fall below 2^-9 or grow beyond 448",
    hint="clamp amax / 6 to 2^-9 ... 448 before it is rounded",
)
def scales_have_a_floor_and_a_ceiling(student: Any, cases: Any) -> None:
    """No scale is below 2^-9 or above 448, and below 2^-6 the scales are whole multiples of 2^-9."""
    steps = np.array([1, 2, 3, 5]) + cases.rng.uniform(0.3, 0.4, 4) * [1, -1, 1, -1]
    subnormal = steps * 6 * E4M3_MIN_SUBNORMAL
    for amax in map(float, [0.0, 1e-6, *subnormal, 2688.0, 1e5 * cases.rng.uniform(1, 2)]):
        expect_values(student.flush_limit(amax), _limit(amax), given=amax, any_width=True)


def _limit(amax: float) -> float:
    scale = round_to_e4m3(np.float32(np.clip(amax / 6, E4M3_MIN_SUBNORMAL, E4M3_MAX)))
    return float(scale) / 4


@check(
    "split_bits-tokens",
    points=1,
    catches="forgets the scale of a token, or that an outlier takes 16 bits and not 16 more",
    hint="add up the bits of one token: outliers, ordinary elements, one scale; divide by the width",
)
def a_token_stores_two_kinds_of_elements_and_a_scale(student: Any, cases: Any) -> None:
    """Each token stores its outliers in 16 bits, the others in `bits`, and one float32 scale."""
    for bits in (2, 4, 8):
        width, n_outliers = int(cases.rng.integers(8, 200)), int(cases.rng.integers(1, 8))
        got = as_number(student.split_bits(N_TOKENS_WITHOUT_MASK, width, n_outliers, bits), "bits per element")
        expected = (16 * n_outliers + bits * (width - n_outliers) + 32) / width
        given = {"width": width, "n_outliers": n_outliers, "bits": bits}
        expect_close(got, expected, 64 * FLOAT32_ULP, given=given)


@check(
    "split_bits-mask",
    points=1,
    catches="forgets that the reader must know which channels are outliers, or stores that for every token",
    hint="one bit per channel says which they are, once for all tokens",
)
def which_channels_they_are_is_stored_once(student: Any, cases: Any) -> None:
    """Which channels are outliers takes one bit per channel, once."""
    width, n_outliers = int(cases.rng.integers(8, 200)), int(cases.rng.integers(1, 8))
    for n_tokens in map(int, cases.rng.integers(2, 40, 3)):
        few, many = (
            as_number(student.split_bits(n, width, n_outliers, 4), "bits per element") for n in (n_tokens, 4 * n_tokens)
        )
        expected = 1 / n_tokens - 1 / (4 * n_tokens)
        given = f"{width} channels: {n_tokens} tokens against {4 * n_tokens}"
        expect_close(few - many, expected, 32 * FLOAT32_ULP, given=given)


@check(
    "rotated_size-outlier",
    points=1,
    catches="divides by the width, or leaves the outlier as large as it was",
    hint="every element of H is 1 or -1; dividing by √D keeps the length of a vector",
)
def a_lone_outlier_spreads_evenly(student: Any, cases: Any) -> None:
    """A lone outlier becomes D equal magnitudes, and keeps its length as a vector."""
    for width in (4, 16, 128):
        outlier = float(cases.rng.uniform(1, 100))
        expected = np.full(2, outlier / np.sqrt(width))
        got = student.rotated_size(outlier, 0.0, width)
        expect_close(got, expected, 4 * FLOAT32_ULP * outlier, given=f"outlier {outlier}, ordinary 0, width {width}")


@check(
    "rotated_size-neighbours",
    points=1,
    catches="forgets what the neighbours add to the first element, or take from the others",
    hint="row 0 of H adds everything up; in every other row the D - 1 neighbours sum to -1 of them",
)
def neighbours_add_up_once_and_cancel_elsewhere(student: Any, cases: Any) -> None:
    """Equal neighbours add up in the first element; in the others all but one of them cancel."""
    for width in (4, 16, 128):
        outlier, ordinary = float(cases.rng.uniform(50, 100)), float(cases.rng.uniform(0.5, 2))
        found = plain_array(student.rotated_size(outlier, ordinary, width)).astype(np.float64)
        given = f"outlier {outlier}, ordinary {ordinary}, width {width}"
        if found.shape != (2,) or not found[1] > 0:
            raise Mismatch("two magnitudes above 0", f"shape {found.shape}", given)
        expected = (outlier + (width - 1) * ordinary) / (outlier - ordinary)
        expect_close(found[0] / found[1], expected, 8 * FLOAT32_ULP * expected, given=f"{given}, as a ratio")
