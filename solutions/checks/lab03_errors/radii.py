"""Checks of `error_radius`: each trap of a code or a scale in a check of its own."""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import (
    Mismatch,
    expect_close,
    expect_dtype_and_shape,
    expect_raises,
    expect_values,
    plain_array,
    show_number,
)
from labkit.formats import E4M3_MAX, E4M3_MIN_SUBNORMAL, QuantisedE2M1

from autograder.checks import Registry

from .inputs import agrees, packed, plain_codes

checks = Registry()
check = checks.check

FLOAT32_ROOM = 1e-6
"""Relative room for an answer in float32: a product and a quotient are two roundings of 2^-24."""


@check(
    "error_radius-codes",
    points=1,
    catches="takes half of a cell's width, the nearer edge, or one radius for all codes",
    hint="the radii of code_radii, times the scale",
)
def each_code_has_its_radius(student: Any, cases: Any) -> None:
    """Each code has its radius, in units of the scale."""
    for s in map(float, cases.rng.integers(8, 16, 4) * 2.0 ** cases.rng.integers(-6, 4, 4)):
        codes = cases.rng.permutation(np.append(np.arange(8), cases.rng.integers(4, 8, 8)))
        _expect_radii(student, packed(codes, [s]))


@check(
    "error_radius-signs",
    points=1,
    catches="takes the sign bit for a part of the magnitude",
    hint="codes 8 to 15 are codes 0 to 7, negative: & 0b0111, into a new array",
)
def the_sign_changes_nothing(student: Any, cases: Any) -> None:
    """Negative elements have the radius of their magnitude, and the codes stay as they were."""
    for s in (float(cases.rng.integers(8, 16)), E4M3_MIN_SUBNORMAL, E4M3_MAX):
        codes = cases.rng.permutation(np.append(np.arange(8, 16), np.arange(8, 16)))
        quantised = packed(codes, [s])
        got, (after,) = student.error_radius.and_arguments(quantised)
        if not agrees(got, fp4kv.error_radius(quantised)):  # a slip in the radii has cost its points already
            unsigned = student.error_radius(packed(codes & 7, [s]))
            positive = expect_dtype_and_shape(unsigned, np.zeros(16), codes, any_width=True)
            if not agrees(got, positive) or not np.all(positive > 0) or (s < E4M3_MAX and np.isinf(positive).any()):
                raise Mismatch("the radii of codes 0 to 7", show_number(plain_array(got)), f"codes {codes}, s = {s}")
        expect_values(after[0], quantised.codes, given="the codes after the call")


@check(
    "error_radius-groups",
    points=1,
    catches="repeats the row of scales, or takes one scale for all",
    hint="np.repeat(scales, 16, axis=-1): each scale serves 16 neighbours",
)
def each_scale_serves_its_group(student: Any, cases: Any) -> None:
    """Each scale serves the 16 codes of its group, in arrays of any shape."""
    for shape in ((48,), (3, 32), (2, 3, 64)):
        scales = np.float32(cases.rng.permutation(np.arange(8, 8 + np.prod(shape) // 16))) / np.float32(8)
        _expect_radii(student, packed(plain_codes(cases, shape), scales.reshape(*shape[:-1], -1)))


@check(
    "error_radius-small_scales",
    points=1,
    catches="forgets that groups under the smallest scales clip by more than a tie",
    hint="code 7 under s = 2^-9 can have been 9 scales: its radius is 3",
)
def small_scales_widen_code_7(student: Any, cases: Any) -> None:
    """Under the smallest scales code 7 has a larger radius, and no other code has."""
    scales = cases.rng.permutation(np.arange(1, 4)) * E4M3_MIN_SUBNORMAL  # above, the tie is farther
    codes = np.where(cases.rng.random((3, 16)) < 0.5, 7, plain_codes(cases, (3, 16)))
    codes[:, :2] = 7, 1
    _expect_radii(student, packed(codes, scales[:, None]))


@check(
    "error_radius-top",
    points=1,
    catches="bounds an element that may have been clipped without limit, or unbounds all under the largest scale",
    hint="a group of any size gets the scale 448: only code 7 of it is unbounded",
)
def code_7_under_448_is_unbounded(student: Any, cases: Any) -> None:
    """Under a scale of 448 code 7 has no radius: infinity; smaller codes keep theirs."""
    codes = plain_codes(cases, (3, 16))
    at, beside = cases.rng.choice(16, 2, replace=False)
    codes[[0, 2], at], codes[1, beside] = 7, 6
    quantised = packed(codes, [[E4M3_MAX], [E4M3_MAX], [416.0]])
    expected = fp4kv.error_radius(quantised)
    got = expect_dtype_and_shape(student.error_radius(quantised), expected, codes, any_width=True)
    given = {"codes": codes, "scales": quantised.scales}
    expect_close(np.isposinf(got), np.isposinf(expected), 0, given=given)
    is_plain = codes < 6  # how far the others reach is another check
    expect_close(np.where(is_plain, got, 0), np.where(is_plain, expected, 0), 1e-3, given=given)


@check(
    "error_radius-refuses",
    points=1,
    catches="answers for a cache with a tensor scale, where code 7 clips in another way",
    hint="raise ValueError unless quantised.tensor_scale is 1",
)
def a_tensor_scale_is_refused(student: Any, cases: Any) -> None:
    """A tensor scale other than 1 is refused with a ValueError."""
    for t in (0.5, 2.0, float(np.float32(cases.rng.uniform(0.01, 0.9)))):
        quantised = QuantisedE2M1(plain_codes(cases, (2, 16)), np.ones((2, 1), np.float32), t)
        expect_raises(ValueError, lambda q=quantised: student.error_radius(q), given=f"a tensor scale of {t}")


def _expect_radii(student: Any, quantised: QuantisedE2M1) -> None:
    expected = fp4kv.error_radius(quantised)
    given = {"codes": quantised.codes, "scales": quantised.scales}
    expect_close(student.error_radius(quantised), expected, FLOAT32_ROOM * expected, given=given)
