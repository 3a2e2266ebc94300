"""Checks of `scale_four_over_six`."""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import expect_codes, expect_values
from labkit.formats import E2M1_MAX, E4M3_MAX, E4M3_MIN_SUBNORMAL, GROUP_LENGTH
from labkit.given.lab02 import decode_e2m1, encode_e2m1, round_to_e4m3

from autograder.checks import Registry

from .inputs import as_e2m1, is_clear_of_e2m1_ties

checks = Registry()
check = checks.check

SUM_MARGIN = 0.02
"""The two sums of squares differ by at least 2 %: sums of 16 in float32 are off by 16 · 2^-24, a millionth."""

SCALE_MARGIN = 1e-3
"""Least relative distance of amax / 6 and amax / 4 from halfway between two scales."""

N_DRAWN = 4096
"""Groups of which those are kept that tell one rule of choice from another: every rule differs in 3 % or more."""


@check(
    "scale_four_over_six-scales",
    points=1,
    catches="keeps amax / 4 unrounded, or takes a scale that brings amax neither to 6 nor to 4",
    hint="both scales are stored as E4M3: round_to_e4m3(amax / 6) and round_to_e4m3(amax / 4)",
)
def each_scale_is_one_of_two(student: Any, cases: Any) -> None:
    """The scale of a group is E4M3(amax / 6) or E4M3(amax / 4), and there is no tensor scale."""
    x = _clear_groups(cases)
    six, four = _two_scales(x)
    is_telling = round_to_e4m3(six * np.float32(1.5)) != four  # rounded twice: E4M3(1.5 · E4M3(amax / 6))
    is_four = fp4kv.scale_four_over_six(x).scales == four
    x = np.concatenate([x[(is_telling & is_four)[:, 0]][:16], x[~is_four[:, 0]][:8]]).reshape(2, 3, 64)
    got = as_e2m1(student.scale_four_over_six(x))
    six, four = _two_scales(x)
    nearer = np.where(np.abs(_as_floats(got.scales, six) - four) < np.abs(_as_floats(got.scales, six) - six), four, six)
    expect_values(got.scales, nearer, given=x)
    expect_values(got.tensor_scale, 1.0, given="one scale per group", any_width=True)


@check(
    "scale_four_over_six-codes",
    points=1,
    catches="returns the codes of one scale with the other",
    hint="np.where on the codes needs the choice once per element: np.repeat it",
)
def codes_are_those_of_the_scale_that_is_kept(student: Any, cases: Any) -> None:
    """The codes are the nearest to x over the scale that is kept."""
    x = _clear_groups(cases)[:24].reshape(3, 128)
    got = as_e2m1(student.scale_four_over_six(x))
    scales = _as_floats(got.scales, _two_scales(x)[0])
    if not np.all((scales >= E4M3_MIN_SUBNORMAL) & (scales <= E4M3_MAX)):
        expect_values(got.scales, fp4kv.scale_four_over_six(x).scales, given=x)
    expected = encode_e2m1(x.astype(np.float64) / np.repeat(scales, GROUP_LENGTH, axis=-1))
    expect_codes(got.codes, expected, given=x)


@check(
    "scale_four_over_six-better",
    points=2,
    catches="always takes one of the two, or chooses by the largest, the absolute or the relative error",
    hint="add up (x - x̂)² over the group under each scale, and keep the smaller sum",
)
def the_smaller_sum_of_squares_wins(student: Any, cases: Any) -> None:
    """Of the two scales the one with the smaller sum of squared errors in its group is kept."""
    x = _telling_groups(cases)
    got, expected = as_e2m1(student.scale_four_over_six(x)), fp4kv.scale_four_over_six(x)
    six, four = _two_scales(x)
    found = _as_floats(got.scales, six)
    took_four = np.abs(found - four) < np.abs(found - six)  # so that a scale that was not rounded is no second slip
    expect_values(np.where(took_four, four, six), expected.scales, given=x)


@check(
    "scale_four_over_six-equal",
    points=1,
    catches="brings amax to 4 where both scales do equally well",
    hint="four only where its sum is smaller: <, not <=",
)
def equal_sums_keep_six(student: Any, cases: Any) -> None:
    """Where both sums are equal, amax goes to 6."""
    exact_both_ways = np.array([0, 3, 6, 12])  # over 2: 0, 1.5, 3, 6; over 3: 0, 1, 2, 4
    x = cases.rng.choice(exact_both_ways, (12, 16)) * cases.rng.choice([-1, 1], (12, 16))
    x[np.arange(12), cases.rng.integers(16, size=12)] = 12
    x = np.float32(x * 2.0 ** cases.rng.integers(-6, 7, (12, 1))).reshape(4, 48)
    expect_values(as_e2m1(student.scale_four_over_six(x)).scales, _two_scales(x)[0], given=x)


@check(
    "scale_four_over_six-range",
    points=1,
    catches="divides by a scale of zero, or lets amax / 4 grow beyond 448",
    hint="clamp both amax / 6 and amax / 4 to 2^-9 ... 448",
)
def both_scales_stay_in_range(student: Any, cases: Any) -> None:
    """Both scales stay between 2^-9 and 448: groups of zeros, tiny and huge ones have codes too."""
    x = np.zeros((8, 16), np.float32)
    x[1, 4], x[2, 7] = 1e-30, 2.0**-11
    x[3, :3] = np.float32([4, 2, 1]) * np.float32(2.0**-9)
    x[4, :4] = [2688, 1792, 448, 224]  # exact under 448 · 6; 448 · 4 clips it
    x[5, :3] = [1800, -900, 450]  # 448 · 4 is nearest, by signed errors as well
    x[6], x[6, 0] = 1500, 1900  # 448 · 4 again, where amax / 4 would be stored as 480 and do better
    x[7, 0] = 2.0**-6  # exact under 2^-8 · 4, a subnormal scale
    got, expected = as_e2m1(student.scale_four_over_six(x)), fp4kv.scale_four_over_six(x)
    expect_values(got.scales, expected.scales, given=x)
    expect_codes(got.codes, expected.codes, given=x)


def _two_scales(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scales that bring amax to 6 and to 4."""
    amax = np.abs(x.reshape(*x.shape[:-1], -1, GROUP_LENGTH)).max(axis=-1)
    six, four = (round_to_e4m3(np.clip(amax / np.float32(top), E4M3_MIN_SUBNORMAL, E4M3_MAX)) for top in (E2M1_MAX, 4))
    return six, four


def _as_floats(scales: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return scales as they came, in float64; they must have the dtype and shape of a record's."""
    expect_values(scales * 0, like * 0, given="the scales, times 0")
    return scales.astype(np.float64)


def _errors(x: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the error of each element of the groups x under one scale each."""
    scales = scales.reshape(-1, 1).astype(np.float64)
    return np.asarray(decode_e2m1(encode_e2m1(x / scales)) * scales - x)


def _clear_groups(cases: Any) -> np.ndarray:
    """Return groups of 16, in drawn order, on which float32 and float64 agree: no ties, no near-equal sums."""
    x = np.float32(cases.rng.normal(size=(N_DRAWN, 16)) * 2.0 ** cases.rng.integers(-4, 6, (N_DRAWN, 1)))
    six, four = (scales.reshape(-1, 1).astype(np.float64) for scales in _two_scales(x))
    sums = [(_errors(x, scales) ** 2).sum(axis=-1) for scales in (six, four)]
    is_clear = np.abs(sums[0] - sums[1]) > SUM_MARGIN * np.maximum(*sums)
    amax = np.abs(x).max(axis=-1, keepdims=True).astype(np.float64)
    for top, scales in ((6, six), (4, four)):
        is_clear &= is_clear_of_e2m1_ties(x / scales) & _is_clear_of_scale_ties(amax / top)[:, 0]
    return x[is_clear]


def _is_clear_of_scale_ties(quotients: np.ndarray) -> np.ndarray:
    low, high = (round_to_e4m3(np.float32(quotients * (1 + sign * SCALE_MARGIN))) for sign in (-1, 1))
    return np.asarray(low == high)


def _telling_groups(cases: Any) -> np.ndarray:
    """Return groups on which other rules of choice than the sum of squares go wrong, one for each and each choice."""
    x = _clear_groups(cases)
    amax = np.abs(x).max(axis=-1)
    errors = [np.abs(_errors(x, scales)) for scales in _two_scales(x)]
    unrounded = [(_errors(x, amax.astype(np.float64) / top) ** 2).sum(axis=-1) for top in (6, 4)]
    rules = {
        "squares": [(error**2).sum(axis=-1) for error in errors],
        "largest": [error.max(axis=-1) for error in errors],
        "absolute": [error.sum(axis=-1) for error in errors],
        "relative": [(error / np.abs(x)).sum(axis=-1) for error in errors],
        "unrounded": unrounded,
        "six": [np.zeros(len(x)), np.ones(len(x))],
        "four": [np.ones(len(x)), np.zeros(len(x))],
    }
    takes_four = {rule: sums[1] < sums[0] for rule, sums in rules.items()}
    roundings = [amax / 4, round_to_e4m3(_two_scales(x)[0][:, 0] * np.float32(1.5))]  # scales that are another check
    is_robust = np.ones(len(x), bool)
    for scales in roundings:
        is_robust &= ((_errors(x, scales) ** 2).sum(axis=-1) < rules["squares"][0]) == takes_four["squares"]
    kept = [np.flatnonzero(is_robust & (takes_four["squares"] != choice))[:4] for choice in takes_four.values()]
    return x[np.sort(np.concatenate(kept))].reshape(-1, 4 * GROUP_LENGTH)
