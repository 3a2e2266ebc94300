"""The better of two scales per group: against exact arithmetic, and never worse than either."""

from fractions import Fraction

import numpy as np
import pytest
from fp4kv import dequantise, quantise_e2m1, round_to_e4m3, scale_four_over_six
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labkit.expect import expect_codes, expect_values
from labkit.formats import E4M3_MAX, E4M3_MIN_SUBNORMAL, QuantisedE2M1

VALUES = [Fraction(value) for value in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]
FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
GROUPS = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 3), st.sampled_from([16, 32])),
    elements=st.floats(-8, 8, width=32) | st.floats(-3000, 3000, width=32) | FLOAT32,
)
SUM_ROUNDING = 2.0**-48
"""A square and a sum of 16 of them are rounded 5 times in float64: relatively 5 · 2^-53 each, less than 2^-50."""


def nearest_code(quotient: np.float32) -> int:
    """The code of a float32 quotient by distance, of two the even one; the sign in bit 3."""
    exact = abs(Fraction(float(quotient)))
    magnitude = min(range(8), key=lambda code: (abs(exact - VALUES[code]), code % 2))
    return magnitude + 8 * bool(np.signbit(quotient))


def under(x: np.ndarray, reach: int) -> QuantisedE2M1:
    """One group under E4M3(clamp(amax / reach, 2^-9, 448)), by search."""
    wanted = np.float32(np.abs(x).max() / np.float32(reach))
    scale = round_to_e4m3(np.clip(wanted, E4M3_MIN_SUBNORMAL, E4M3_MAX)[None])
    codes = np.array([nearest_code(value / scale[0]) for value in x], np.uint8)
    return QuantisedE2M1(codes, scale.astype(np.float32), 1.0)


def squared_error(x: np.ndarray, quantised: QuantisedE2M1) -> Fraction:
    """The exact sum of squared errors."""
    decoded = dequantise(quantised)
    return sum(((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(x, decoded, strict=True)), Fraction(0))


def groups_of_many_kinds(rng: np.random.Generator) -> np.ndarray:
    """Gaussian groups of every size, with outliers, on grids, at the floor and beyond 448."""
    normal = rng.normal(size=(200, 16))
    kinds = [
        normal * np.exp2(rng.integers(-14, 12, (200, 1))),
        np.where(np.arange(16) == 5, 20, 1) * normal,
        rng.integers(-6, 7, (200, 16)) / 2,
        normal * 2.0**-9,
        rng.standard_t(1.5, (200, 16)) * 300,
    ]
    return np.concatenate(kinds).astype(np.float32)


def test_it_takes_the_scale_with_the_smaller_exact_error(rng: np.random.Generator) -> None:
    chosen = {6: 0, 4: 0}
    x = groups_of_many_kinds(rng)
    got = scale_four_over_six(x)
    for group, codes, scales in zip(x, got.codes, got.scales, strict=True):
        options = {reach: under(group, reach) for reach in (6, 4)}
        errors = {reach: squared_error(group, option) for reach, option in options.items()}
        if abs(errors[4] - errors[6]) > SUM_ROUNDING * errors[6] or options[4].scales == options[6].scales:
            best = 4 if errors[4] < errors[6] else 6
            chosen[best] += 1
            expect_codes(codes, options[best].codes, given=group)
            expect_values(scales, options[best].scales, given=group)
    assert min(chosen.values()) > 200, chosen


@settings(deadline=None)  # fractions: slow on a busy machine
@given(x=GROUPS)
def test_no_group_is_worse_than_under_either_scale(x: np.ndarray) -> None:
    groups = x.reshape(-1, 16)
    got = scale_four_over_six(x)
    for group, codes, scale in zip(groups, got.codes.reshape(-1, 16), got.scales.ravel(), strict=True):
        error = squared_error(group, QuantisedE2M1(codes, scale[None], 1.0))
        least = min(squared_error(group, under(group, reach)) for reach in (6, 4))
        assert error <= least * (1 + Fraction(SUM_ROUNDING)), group


@settings(deadline=None)  # fractions: slow on a busy machine
@given(x=GROUPS)
def test_groups_are_chosen_alone(x: np.ndarray) -> None:
    whole = scale_four_over_six(x)
    for index in np.ndindex(whole.scales.shape):
        columns = slice(16 * index[-1], 16 * index[-1] + 16)
        part = scale_four_over_six(x[index[:-1]][columns])
        assert np.array_equal(part.codes, whole.codes[index[:-1]][columns]), x
        assert part.scales[0] == whole.scales[index], x


def group(*values: float) -> np.ndarray:
    """One group of 16: the given values, then zeros."""
    return np.float32([*values, *[0.0] * (16 - len(values))])


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ((6, 3), 1.0),  # exact at 6
        ((4, 3), 1.0),  # exact at 4: under 4/6, rounded to 0.6875, neither is
        ((5, 5, 5), 1.25),  # 5/6 goes to 0.8125, and 5 to 4.875; under 1.25 it is exact
        ((6, 5, 5), 1.5),  # under 1, 5 is a tie and goes to 4; under 1.5, to 4.5: 0.25 each instead of 1
        ((6, 1, 1), 1.0),  # under 1.5, 1 would be 0.75
        ((), 2.0**-9),  # zeros: both scales are the floor
        ((1e6,), 448.0),  # both are 448
        ((2240,), 384.0),  # 2240 / 6 goes to 384, and 2240 to 2304; 2240 / 4 saturates, and 2240 is a tie to 1792
    ],
)
def test_scales_of_small_groups(values: tuple[float, ...], scale: float) -> None:
    got = scale_four_over_six(group(*values))
    expect_values(got.scales, np.float32([scale]), given=values)


def test_where_the_errors_are_equal_it_is_the_first_scale() -> None:
    for values in ((2688.0,), (3 * 2.0**-9,), (0.0,)):
        x = group(*values)
        expect_values(scale_four_over_six(x).scales, quantise_e2m1(x).scales, given=values)
    x = group(12, 7)  # under 2: 12 and 8, under 3: 12 and 6
    assert squared_error(x, under(x, 6)) == squared_error(x, under(x, 4)) == 1
    expect_values(scale_four_over_six(x).scales, np.float32([2]), given=x)


def test_signs_and_zeros_keep_their_codes() -> None:
    got = scale_four_over_six(group(-4, -0.0, 0.0, 3))
    expect_codes(got.codes[:4], np.uint8([14, 8, 0, 5]), given=[-4.0, -0.0, 0.0, 3.0])
    assert (got.codes.dtype, got.scales.dtype, got.tensor_scale) == (np.uint8, np.float32, 1.0)


def test_what_quantise_e2m1_refuses_is_refused() -> None:
    x = np.ones((2, 16), np.float32)
    x[1, 3] = np.inf
    with pytest.raises(ValueError, match=r"x: expected finite float32 values, got inf at index \(1, 3\)"):
        scale_four_over_six(x)
    with pytest.raises(ValueError, match="x: expected a last axis that is a multiple of 16"):
        scale_four_over_six(np.ones((2, 24), np.float32))


@pytest.mark.parametrize("shape", [(0,), (0, 16), (3, 0)])
def test_of_nothing_comes_nothing(shape: tuple[int, ...]) -> None:
    got = scale_four_over_six(np.zeros(shape, np.float32))
    assert got.codes.shape == shape and got.scales.shape == (*shape[:-1], shape[-1] // 16)


def test_arrays_that_are_not_contiguous_are_read_by_position_and_left_alone(rng: np.random.Generator) -> None:
    x = rng.normal(size=(32, 6)).astype(np.float32)
    before = x.copy()
    expect_codes(scale_four_over_six(x.T[::2]).codes, scale_four_over_six(x.T[::2].copy()).codes, given="columns")
    expect_values(x, before, given="the input after the calls")


def test_it_lowers_the_error_of_gaussian_values(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2000, 16)).astype(np.float32)
    errors = [np.linalg.norm(dequantise(quantised) - x) for quantised in (quantise_e2m1(x), scale_four_over_six(x))]
    assert 0.88 < errors[1] / errors[0] < 0.95  # 0.92 on two million values
