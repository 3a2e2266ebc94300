"""Integer formats: against exact arithmetic, along every axis, at the ends of float32."""

from fractions import Fraction

import numpy as np
import pytest
from fp4kv import dequantise, quantise_int
from labkit.expect import expect_close, expect_values
from labkit.formats import FLOAT32_MAX, FLOAT32_TINY, INTEGER_BITS, QuantisedInt


def nearest_integers(x: np.ndarray, bits: int, symmetric: bool) -> QuantisedInt:
    """One group in exact arithmetic but for the scale: an independent, slow definition."""
    exact = [Fraction(float(value)) for value in x]
    low = Fraction(0) if symmetric else min(exact)
    span = max(map(abs, exact)) if symmetric else max(exact) - low
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    scale = np.float32(float(span / levels)) or FLOAT32_TINY
    codes = [round((value - low) / Fraction(float(scale))) for value in exact]  # Python rounds ties to even
    return QuantisedInt(np.int16(codes), np.float32([scale]), np.float32([float(low)]), len(x), -1)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", INTEGER_BITS)
def test_integers_agree_with_fractions(bits: int, symmetric: bool, rng: np.random.Generator) -> None:
    for size in (1e-3, 1.0, 1e30):
        x = (rng.normal(size=8) * size).astype(np.float32)
        got, expected = quantise_int(x, bits, 8, symmetric=symmetric), nearest_integers(x, bits, symmetric)
        expect_values(got.scales, expected.scales, given=x)
        expect_values(got.minimums, expected.minimums, given=x)
        expect_values(got.codes, expected.codes, given=x)


@pytest.mark.parametrize("bits", INTEGER_BITS)
def test_integer_ties_go_to_even(bits: int) -> None:
    levels = 2 ** (bits - 1) - 1
    x = np.float32([levels, 0.5, -0.5, 1.5 if levels > 1 else 1])
    expected = np.int16([levels, 0, 0, 2 if levels > 1 else 1])
    expect_values(quantise_int(x, bits, 4).codes, expected, given=x)


@pytest.mark.parametrize("bits", INTEGER_BITS)
def test_integer_codes_use_their_whole_range_and_no_more(bits: int) -> None:
    x = np.linspace(-1, 1, 4096, dtype=np.float32)
    symmetric, affine = quantise_int(x, bits, 4096), quantise_int(x, bits, 4096, symmetric=False)
    levels = 2 ** (bits - 1) - 1
    assert (symmetric.codes.min(), symmetric.codes.max()) == (-levels, levels)
    assert (affine.codes.min(), affine.codes.max()) == (0, 2**bits - 1)
    assert not symmetric.minimums.any()


@pytest.mark.parametrize("symmetric", [True, False])
def test_any_axis_is_the_last_axis_moved(symmetric: bool, rng: np.random.Generator) -> None:
    x = rng.normal(size=(4, 6, 8)).astype(np.float32)
    for axis in (-3, -2, -1, 0, 1, 2):
        got = quantise_int(x, 4, 2, axis, symmetric)
        last = quantise_int(np.moveaxis(x, axis, -1), 4, 2, -1, symmetric)
        expect_values(np.moveaxis(got.codes, axis, -1), last.codes, given=f"axis {axis}")
        expect_values(np.moveaxis(got.scales, axis, -1), last.scales, given=f"axis {axis}")
        expect_values(np.moveaxis(got.minimums, axis, -1), last.minimums, given=f"axis {axis}")
        expect_values(np.moveaxis(dequantise(got), axis, -1), dequantise(last), given=f"axis {axis}")


@pytest.mark.parametrize("value", [0.1, -3.7, 3.4028235e38, 1e-45, 0.0])
@pytest.mark.parametrize("bits", INTEGER_BITS)
def test_a_constant_group_of_affine_integers_is_exact(value: float, bits: int) -> None:
    x = np.full(8, value, np.float32)
    expect_values(dequantise(quantise_int(x, bits, 4, symmetric=False)), x, given=x)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", INTEGER_BITS)
def test_a_zero_group_of_integers_decodes_to_zeros(bits: int, symmetric: bool) -> None:
    x = np.float32([0, 0, 0, 0, 1, -1, 2, 3])
    expect_values(dequantise(quantise_int(x, bits, 4, symmetric=symmetric))[:4], np.zeros(4, np.float32), given=x)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", INTEGER_BITS)
def test_integers_of_the_largest_float32_do_not_overflow(bits: int, symmetric: bool) -> None:
    x = np.float32([FLOAT32_MAX, -FLOAT32_MAX])
    decoded = dequantise(quantise_int(x, bits, 2, symmetric=symmetric))
    # The scale is off by at most 2^-24 of itself, times at most 2 · FLOAT32_MAX.
    expect_close(decoded, x, 2 * 2.0**-24 * float(FLOAT32_MAX), given=x)


def test_codes_stay_in_range_where_the_scale_is_a_single_subnormal() -> None:
    x = np.float32([180, -180]) * FLOAT32_TINY  # 180/127 units make a scale of one unit
    expect_values(quantise_int(x, 8, 2).codes, np.int16([127, -127]), given=x)


def test_keys_want_their_scale_per_channel() -> None:
    # transformers 35185, 35760, 34189: two bits along the wrong axis
    keys = np.float32([[100, 0, 1, 2], [100, 2, 1, 0]])
    per_channel = quantise_int(keys, 2, group=2, axis=0, symmetric=False)
    per_token = quantise_int(keys, 2, group=4, axis=1, symmetric=False)
    expect_close(dequantise(per_channel), keys, 2.0**-22, given=keys)  # 2/3 is no float32: 2 units of 2^-23 beside 2
    expect_values(dequantise(per_token), np.float32([[100, 0, 0, 0], [100, 0, 0, 0]]), given=keys)


@pytest.mark.parametrize("bits", [1, 5, 7, 16, 0, -4])
def test_other_widths_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match=rf"bits: expected one of \(8, 6, 4, 3, 2\), got {bits}"):
        quantise_int(np.ones(4, np.float32), bits, 4)


@pytest.mark.parametrize("group_length", [0, -2, 3, 8])
def test_group_lengths_that_do_not_divide_are_refused(group_length: int) -> None:
    with pytest.raises(ValueError, match=f"group: expected a divisor of 4, the length of axis 1, got {group_length}"):
        quantise_int(np.ones((6, 4), np.float32), 4, group_length)


@pytest.mark.parametrize("axis", [2, -3])
def test_axes_that_are_none_are_refused(axis: int) -> None:
    with pytest.raises(ValueError, match=rf"axis: expected an axis of an array of shape \(6, 4\), got {axis}"):
        quantise_int(np.ones((6, 4), np.float32), 4, 2, axis)


def test_a_lone_number_has_no_axis_to_group() -> None:
    with pytest.raises(ValueError, match=r"axis: expected an axis of an array of shape \(\)"):
        quantise_int(np.array(1.0), 4, 1)


def test_integers_of_nothing_are_nothing() -> None:
    quantised = quantise_int(np.zeros((0, 8), np.float32), 4, 4, symmetric=False)
    assert quantised.scales.shape == quantised.minimums.shape == (0, 2)
    expect_values(dequantise(quantised), np.zeros((0, 8), np.float32), given="shape (0, 8)")
