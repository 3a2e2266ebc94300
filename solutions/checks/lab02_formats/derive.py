"""Checks of the section *derive*: what can be found on paper."""

import math
from typing import Any

import numpy as np
from fp4kv import encode_e2m1
from labkit import formats
from labkit.expect import Mismatch, expect_values, plain_array
from labkit.formats import ScaleRule

from autograder.checks import Registry

from .inputs import E4M3_NORMAL, expect_near

checks = Registry()
check = checks.check


@check(
    "tie_codes-even",
    points=1,
    catches="sends a tie to the odd code, away from zero or towards it",
    hint="write the codes of both neighbours in binary and take the one that ends in 0",
    per_student=False,
)
def each_tie_goes_to_the_even_neighbour(student: Any, cases: Any) -> None:
    """Each of the seven ties goes to the neighbour with the even code."""
    expected = encode_e2m1(formats.E2M1_TIES)
    expect_values(student.tie_codes(), expected, given=formats.E2M1_TIES, any_width=True)


@check(
    "largest_amax-normal",
    points=1,
    catches="takes a whole step, the wrong side or one relative step for all scales",
    hint="how far is it to the next scale, and where between the two does rounding turn?",
)
def normal_scales_reach_half_a_step_up(student: Any, cases: Any) -> None:
    """From 2^-6 on, the steps between scales grow with each power of two."""
    drawn = cases.rng.choice(E4M3_NORMAL[:-1], 8, replace=False)
    _expect_largest_amax(student, [*drawn, 1.875, 2.0**-6])


@check(
    "largest_amax-subnormal",
    points=1,
    catches="lets the steps shrink below 2^-6",
    hint="below 2^-6 the distance from one scale to the next no longer changes",
)
def subnormal_scales_keep_their_step(student: Any, cases: Any) -> None:
    """Below 2^-6 all steps are 2^-9, so that the smallest scales clip most."""
    _expect_largest_amax(student, cases.rng.permutation(np.arange(1, 8) * 2.0**-9))


@check(
    "largest_amax-top",
    points=1,
    catches="forgets that the largest scale saturates",
    hint="which scale does a group with an amax of a million get?",
    per_student=False,
)
def the_largest_scale_takes_all_above(student: Any, cases: Any) -> None:
    """The largest scale takes every amax above it."""
    expect_values(student.largest_amax(formats.E4M3_MAX), math.inf, given=formats.E4M3_MAX)


def _expect_largest_amax(student: Any, scales: Any) -> None:
    grid = np.concatenate([np.arange(1, 8) * 2.0**-9, E4M3_NORMAL])
    for s in map(float, scales):
        after = grid[np.searchsorted(grid, s) + 1]
        expect_values(student.largest_amax(s), 6 * (s + after) / 2, given=s, any_width=True)


@check(
    "magnitude_range-largest",
    points=1,
    catches="leaves out the 6 of E2M1, or the tensor scale",
    hint="the largest code times the largest group scale times the tensor scale",
)
def largest_is_code_times_scale_times_tensor_scale(student: Any, cases: Any) -> None:
    """The largest magnitude is the largest code times the largest scale, times t where there is one."""
    for rule, amax, t in _tensors(cases):
        expect_near(_pair(student.magnitude_range(rule, amax))[1], 6 * 448 * t, given=f"{rule.name}, {amax}")


@check(
    "magnitude_range-vanishes",
    points=1,
    catches="takes the smallest scale, or the smallest code under it, for the end",
    hint="which quotients are rounded to code 0? The last of them, under the smallest scale, times t",
)
def a_group_vanishes_at_the_first_tie_of_the_smallest_scale(student: Any, cases: Any) -> None:
    """A group vanishes when its amax, under the smallest scale, is still rounded to 0."""
    for rule, amax, t in _tensors(cases):
        expect_near(_pair(student.magnitude_range(rule, amax))[0], 2.0**-9 * t / 4, given=f"{rule.name}, {amax}")


def _tensors(cases: Any) -> list[tuple[ScaleRule, float, float]]:
    """Return scale rules with the tensor's amax and the tensor scale."""
    drawn = [float(2.0 ** cases.rng.uniform(-20, 20)) for _ in range(3)]
    one = [(ScaleRule.GROUP, amax, 1.0) for amax in drawn[:2]]
    return [*one, *((ScaleRule.TENSOR_AND_GROUP, amax, amax / 2688) for amax in drawn)]


def _pair(got: Any) -> Any:
    found = plain_array(got)
    if found.shape != (2,):
        raise Mismatch("two numbers", f"an array of shape {found.shape}")
    return found


@check(
    "stored_bits-metadata",
    points=1,
    catches="counts the metadata for every element, or not at all",
    hint="add up the bits of one whole group, then divide by its length",
)
def metadata_is_shared(student: Any, cases: Any) -> None:
    """Metadata is stored once per group and shared by its elements."""
    drawn = (int(cases.rng.integers(2, 9)), int(2 ** cases.rng.integers(4, 9)), int(cases.rng.integers(1, 65)))
    for code_bits, length, metadata in [(4, 32, 8), (4, 32, 64), (2, 128, 8), drawn]:
        expected = (code_bits * length + metadata) / length
        expect_values(
            student.stored_bits(code_bits, length, metadata),
            expected,
            given=f"{code_bits}-bit codes, groups of {length}, {metadata} bits per group",
            any_width=True,
        )
