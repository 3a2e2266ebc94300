"""Checks of `quantise_e2m1`: codes under one scale per group, and under two."""

from typing import Any

import numpy as np
from fp4kv import encode_e2m1, quantise_e2m1
from labkit import formats
from labkit.expect import Mismatch, expect_codes, expect_raises, expect_values
from labkit.formats import QuantisedE2M1, ScaleRule

from autograder.checks import Registry

from .inputs import E4M3_NORMAL, expect_near, expect_refused, signed

checks = Registry()
check = checks.check

SCALE_MARGIN = 0.02
"""Scales are asked for at amax = 6s(1 ± 0.02): E4M3 rounds to s up to 1/32 away, so no tie is near."""

E2M1_CLEAR = np.array([0.95, 1.1, 1.35, 1.6, 1.9, 2.2, 2.7, 3.2, 3.7, 4.6, 5.3, 5.9])
"""Quotients of codes 2 to 7 that lie at least 4 % away from every tie."""

BESIDE_A_SCALE_TIE = np.nextafter(np.float32(6 * 1.1875), np.float32(0))
"""An amax whose sixth stays below 1.1875, halfway between two scales; times float32(1/6) it is 1.1875."""


@check(
    "quantise_e2m1-scales",
    points=2,
    catches="takes one scale for the tensor, groups of another length, a maximum without magnitudes, or a t of its own",
    hint="reshape to (..., groups, 16) and take the largest magnitude of each group",
)
def each_group_has_its_scale(student: Any, cases: Any) -> None:
    """Each group of 16 has its own scale, E4M3(amax / 6), of the largest magnitude whatever its sign."""
    amax = _scattered_amax(cases, (2, 3, 4))
    x = cases.rng.uniform(-0.9, 0.9, (*amax.shape, 16)) * amax[..., None]
    peak = cases.rng.integers(0, 16, amax.shape)
    np.put_along_axis(x, peak[..., None], signed(cases, amax)[..., None], -1)
    x = np.float32(x).reshape(2, 3, 64)
    got = _e2m1(student.quantise_e2m1(x))
    expect_values(got.scales, quantise_e2m1(x).scales, given=x)
    expect_values(got.tensor_scale, 1.0, given="ScaleRule.GROUP, which has no tensor scale", any_width=True)


@check(
    "quantise_e2m1-codes",
    points=1,
    catches="divides by amax / 6 itself, not by the scale that is stored",
    hint="the reader has only the stored scale: divide by that one",
)
def elements_are_divided_by_the_stored_scale(student: Any, cases: Any) -> None:
    """Elements are divided by the scale that is stored, not by amax / 6."""
    quotients = np.tile([6.3, 5.2, 3.6, 2.6], (6, 4))
    quotients[:, 4:] = cases.rng.choice(E2M1_CLEAR, (6, 12))
    quotients[:, 8:] *= cases.rng.choice([-1, 1], (6, 8))
    x = np.float32(quotients * 2.0 ** cases.rng.integers(-5, 7)).reshape(3, 32)  # one amax: any grouping does
    expect_codes(_e2m1(student.quantise_e2m1(x)).codes, quantise_e2m1(x).codes, given=x)


@check(
    "quantise_e2m1-floor",
    points=1,
    catches="clamps the scale at the wrong floor, or divides zero by zero",
    hint="clamp amax / 6 to 2^-9 before it is rounded; a group of zeros then has a scale too",
)
def small_groups_keep_the_smallest_scale(student: Any, cases: Any) -> None:
    """No scale is smaller than 2^-9: small groups keep what they can, and zeros stay zeros."""
    x = np.zeros((5, 16), np.float32)
    x[1, 3], x[2, 0] = 1e-5, 1e-30
    for row in (3, 4):
        x[row, :8] = cases.rng.choice([1, 1.5, 2], 8) * 2.0**-9
    expected = quantise_e2m1(x)
    got = _e2m1(student.quantise_e2m1(x))
    expect_values(got.scales, expected.scales, given=x)
    expect_codes(got.codes, expected.codes, given=x)
    for rule in ScaleRule:
        zeros = _e2m1(student.quantise_e2m1(x[:1], rule))
        expect_codes(zeros.codes, np.zeros((1, 16), np.uint8), given=f"zeros, {rule.name}")


@check(
    "quantise_e2m1-division",
    points=1,
    catches="multiplies by the reciprocal",
    hint="x * (1 / s) is rounded twice: write x / s",
)
def quotients_are_rounded_once(student: Any, cases: Any) -> None:
    """The quotient is rounded once: a reciprocal would move this element across a tie."""
    rows = []
    for s in np.float32([1.75, 1.875]) * np.float32(2.0 ** cases.rng.integers(-4, 7)):
        moved = [x for x in cases.near(formats.E2M1_TIES[2:] * s) if _reciprocal_falls_on_a_tie(x, s)]
        rows.append(np.resize(np.float32([6 * s, *moved]), 16))
    rows.append(np.resize(BESIDE_A_SCALE_TIE * np.float32(2.0 ** cases.rng.integers(-4, 7)), 16))
    x = np.stack(rows)
    got, expected = _e2m1(student.quantise_e2m1(x)), quantise_e2m1(x)
    expect_values(got.scales, expected.scales, given=x)
    expect_codes(got.codes, expected.codes, given=x)


@check(
    "quantise_e2m1-tensor_scale",
    points=2,
    catches="leaves t out of the codes or out of the group scales, or takes another range than 2688",
    hint="t = amax / 2688; the group scale is (amax of the group / 6) / t; elements are divided by s · t",
)
def two_scales_multiply(student: Any, cases: Any) -> None:
    """With a tensor scale t = amax / 2688, group scales are relative to t and codes to s · t."""
    t = float(2.0 ** cases.rng.uniform(-12, 6))
    amax = _scattered_amax(cases, (2, 4)) * t
    amax[1, 2] = 2688 * t
    x = (amax[..., None] / 6) * cases.rng.choice([1, 1.5, 2, 3, 4], (2, 4, 16))
    x[..., 5] = amax
    x = np.float32(x).reshape(2, 64)
    got, expected = _e2m1(student.quantise_e2m1(x, ScaleRule.TENSOR_AND_GROUP)), _two_level(x)
    expect_near(got.tensor_scale, expected.tensor_scale, given=f"amax = {np.abs(x).max()}")
    expect_values(got.scales, expected.scales, given=x)
    expect_codes(got.codes, expected.codes, given=x)


@check(
    "quantise_e2m1-refuses",
    points=1,
    catches="pads or cuts a width that 16 does not divide, or lets NaN or infinity through",
    hint="look at x.shape[-1] % 16 first; encode_e2m1 sees the quotients, not your x",
)
def what_cannot_be_grouped_is_refused(student: Any, cases: Any) -> None:
    """Widths that 16 does not divide, NaN and infinity are refused with a ValueError."""
    for width in (8, int(16 * cases.rng.integers(1, 4) + cases.rng.integers(1, 16))):
        x = np.ones((16, width), np.float32)
        expect_raises(ValueError, lambda x=x: student.quantise_e2m1(x), given=f"shape {x.shape}")
    expect_refused(cases, student.quantise_e2m1, shape=(3, 32))


def _scattered_amax(cases: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an amax for each group whose normal scale no rounding of amax / 6 can change."""
    scales = cases.rng.choice(E4M3_NORMAL[8:-16], shape)
    return np.asarray(6 * scales * (1 + cases.rng.uniform(-SCALE_MARGIN, SCALE_MARGIN, shape)))


def _two_level(x: np.ndarray) -> QuantisedE2M1:
    return quantise_e2m1(x, ScaleRule.TENSOR_AND_GROUP)


def _reciprocal_falls_on_a_tie(x: np.float32, s: np.float32) -> bool:
    """Return whether x / s has an odd code beside a tie and x · (1 / s) is that tie, which goes to the even one."""
    product = x * (np.float32(1) / s)
    return bool(x / s != product and product in formats.E2M1_TIES and encode_e2m1(np.array(x / s)) % 2)


def _e2m1(got: Any) -> QuantisedE2M1:
    if not isinstance(got, tuple) or len(got) != 3:
        raise Mismatch("a QuantisedE2M1: codes, scales, tensor_scale", f"a {type(got).__name__}")
    codes, scales, tensor_scale = got
    if type(tensor_scale) is not float and not isinstance(tensor_scale, np.floating):
        raise Mismatch("a float as tensor_scale", f"a {type(tensor_scale).__name__}")
    return QuantisedE2M1(codes, scales, float(tensor_scale))
