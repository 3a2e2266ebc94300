"""What an E2M1 group makes zero: everything up to a quarter of its stored scale, and nothing more."""

from itertools import pairwise

import numpy as np
import pytest
from fp4kv import dequantise, quantise_e2m1, round_to_e4m3
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labkit.expect import expect_values
from labkit.formats import E4M3_MAX, E4M3_MIN_NORMAL, E4M3_MIN_SUBNORMAL

SCALES = np.unique(round_to_e4m3(np.arange(1, 448 * 512 + 1, dtype=np.float32) / 512))
UP, DOWN = np.float32(np.inf), np.float32(-np.inf)


def round_trip(*values: float) -> np.ndarray:
    """What comes back of one group: the given values, then zeros."""
    return dequantise(quantise_e2m1(np.float32([*values, *[0.0] * (16 - len(values))])))


def scale_of(amax: float) -> float:
    """The scale stored for a group of this amax."""
    return float(quantise_e2m1(np.float32([amax, *[0.0] * 15])).scales[0])


def test_a_hundred_makes_fifteen_ones_vanish() -> None:
    x = np.float32([100, *[1] * 15])
    expect_values(dequantise(quantise_e2m1(x)), np.float32([96, *[0] * 15]), given=x)


@pytest.mark.parametrize(
    ("amax", "scale", "one"),
    [
        (24, 4.0, 0.0),  # 1 is a quarter of 4, a tie that goes to zero
        (23, 3.75, 1.875),
        (23.25, 4.0, 0.0),  # 3.875, halfway between two scales, goes to the even one
        (float(np.nextafter(np.float32(23.25), DOWN)), 3.75, 1.875),
    ],
)
def test_a_one_vanishes_beside_24_and_not_beside_23(amax: float, scale: float, one: float) -> None:
    assert scale_of(amax) == scale
    expect_values(round_trip(amax, 1, -1)[1:3], np.float32([one, -one]), given=amax)


def test_there_are_126_scales_from_the_floor_to_448() -> None:
    assert len(SCALES) == 126 and (SCALES[0], SCALES[-1]) == (E4M3_MIN_SUBNORMAL, E4M3_MAX)


def test_a_quarter_of_any_scale_vanishes_and_the_next_number_does_not() -> None:
    for scale in SCALES:
        limit, half = scale / np.float32(4), scale / np.float32(2)
        inside, outside = np.nextafter(limit, DOWN), np.nextafter(limit, UP)
        x = (6 * scale, limit, -limit, inside, -inside, outside, -outside)
        assert scale_of(6 * scale) == scale
        expect_values(round_trip(*x)[1:7], np.float32([0, 0, 0, 0, half, -half]), given=x)


def test_scales_change_halfway_and_ties_go_to_even() -> None:
    for scale, above in pairwise(SCALES):
        halfway = 6 * (scale / np.float32(2) + above / np.float32(2))  # exact: at most 8 significant bits
        is_even = float(scale) / step_of(float(scale)) % 2 == 0
        got = [scale_of(amax) for amax in (np.nextafter(halfway, DOWN), halfway, np.nextafter(halfway, UP))]
        assert got == [scale, scale if is_even else above, above], halfway


def step_of(scale: float) -> float:
    """The distance from an E4M3 value to the next larger one."""
    return 2.0 ** (np.floor(np.log2(max(scale, E4M3_MIN_NORMAL))) - 3)


def test_the_limit_is_16_to_18_seventeenths_of_a_24th_of_amax() -> None:
    normal = SCALES[E4M3_MIN_NORMAL <= SCALES].astype(np.float64)
    largest = 6 * (normal[:-1] + normal[1:]) / 2  # the amax at which a scale gives way to the next
    lowest, highest = normal[:-1] / 4 / (largest / 24), normal[1:] / 4 / (largest / 24)
    assert np.isclose(lowest.min(), 16 / 17, rtol=1e-12) and np.isclose(highest.max(), 18 / 17, rtol=1e-12)

    subnormal = SCALES[:7].astype(np.float64)
    largest = 6 * (subnormal + SCALES[1:8]) / 2
    assert subnormal[0] / 4 / (largest[0] / 24) == 2 / 3, "the coarsest: an amax of 9 · 2^-9 under the scale 2^-9"


def test_under_the_floor_what_is_below_2_to_the_minus_11_vanishes_whatever_amax() -> None:
    floor = np.float32(2.0**-11)
    expect_values(round_trip(floor, -floor), np.zeros(16, np.float32), given=floor)
    expect_values(round_trip(np.nextafter(floor, UP))[:1], np.float32([2.0**-10]), given=np.nextafter(floor, UP))


def test_over_448_scales_stop_and_so_does_what_vanishes() -> None:
    expect_values(round_trip(1e6, 112, np.nextafter(np.float32(112), UP))[:3], np.float32([2688, 0, 224]), given=1e6)


@given(
    x=hnp.arrays(np.float32, 16, elements=st.floats(-8, 8, width=32)),
    exponent=st.integers(-20, 12),
)
def test_zero_comes_back_exactly_of_what_is_within_a_quarter(x: np.ndarray, exponent: int) -> None:
    x = np.ldexp(x, exponent).astype(np.float32)
    quantised = quantise_e2m1(x)
    assert np.array_equal(dequantise(quantised) == 0, np.abs(x) <= quantised.scales[0] / 4), x
