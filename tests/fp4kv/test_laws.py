"""Laws that hold for every input, looked for with hypothesis."""

import numpy as np
import pytest
from fp4kv import (
    decode_e2m1,
    dequantise,
    encode_e2m1,
    pack_nibbles,
    quantise_e2m1,
    quantise_int,
    round_to_e4m3,
    ue8m0_exponent,
    unpack_nibbles,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labkit.formats import E2M1_MAX, E4M3_MAX, E4M3_MIN_SUBNORMAL, INTEGER_BITS, ScaleRule

FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
NEAR = st.floats(-8, 8, width=32)
ARRAYS = hnp.arrays(np.float32, hnp.array_shapes(max_dims=3), elements=FLOAT32 | NEAR)
GROUPS = hnp.arrays(np.float32, st.tuples(st.integers(1, 3), st.sampled_from([16, 32])), elements=FLOAT32 | NEAR)
CODES = hnp.arrays(np.uint8, st.tuples(st.integers(0, 3), st.sampled_from([2, 8])), elements=st.integers(0, 15))
RULES = st.sampled_from(ScaleRule)
HALF_ULP = 2.0**-24  # relative error of one correctly rounded float32 operation


@pytest.mark.parametrize("function", [lambda x: decode_e2m1(encode_e2m1(x)), round_to_e4m3], ids=["e2m1", "e4m3"])
@given(x=ARRAYS)
def test_rounding_twice_is_rounding_once(function, x: np.ndarray) -> None:
    once = function(x)
    assert np.array_equal(function(once), once), x


@pytest.mark.parametrize("function", [lambda x: decode_e2m1(encode_e2m1(x)), round_to_e4m3], ids=["e2m1", "e4m3"])
@given(x=ARRAYS)
def test_rounding_is_monotone_and_odd(function, x: np.ndarray) -> None:
    ordered = function(np.sort(x.ravel()))
    assert (np.diff(ordered) >= 0).all(), x
    assert np.array_equal(function(-x).view(np.uint32), (-function(x)).view(np.uint32)), x  # signs of zeros included


@given(x=hnp.arrays(np.float32, 20, elements=NEAR))
def test_no_value_is_nearer_than_the_one_chosen(x: np.ndarray) -> None:
    values = decode_e2m1(np.arange(16, dtype=np.uint8)).astype(np.float64)
    distances = np.abs(x[:, None].astype(np.float64) - values)
    chosen = np.take_along_axis(distances, encode_e2m1(x)[:, None].astype(np.intp), axis=1)[:, 0]
    assert np.array_equal(chosen, distances.min(axis=1)), x


@given(x=hnp.arrays(np.float32, 20, elements=st.floats(-448, 448, width=32)))
def test_e4m3_error_is_at_most_half_a_step(x: np.ndarray) -> None:
    # 4 significant bits: a relative error of at most 2^-4; below 2^-6, half the smallest value.
    error = np.abs(round_to_e4m3(x).astype(np.float64) - x)
    assert (error <= np.maximum(np.abs(x) * 2.0**-4, E4M3_MIN_SUBNORMAL / 2)).all(), x


@given(codes=CODES)
def test_unpack_undoes_pack(codes: np.ndarray) -> None:
    assert np.array_equal(unpack_nibbles(pack_nibbles(codes)), codes)


@given(amax=st.floats(0, 3.4028234663852886e38, width=32))
def test_ue8m0_is_the_smallest_exponent_that_fits(amax: float) -> None:
    exponent = int(ue8m0_exponent(np.array([amax], np.float32))[0])
    counted = max(float(np.float32(amax)), float(np.float32(1e-4)))  # Python floats hold 448 · 2^e exactly
    assert counted <= E4M3_MAX * 2.0**exponent, amax
    assert counted > E4M3_MAX * 2.0 ** (exponent - 1), amax


@given(x=GROUPS, rule=RULES)
def test_elements_are_off_by_at_most_half_a_gap_unless_clipped(x: np.ndarray, rule: ScaleRule) -> None:
    quantised = quantise_e2m1(x, rule)
    steps = np.repeat(quantised.scales, 16, axis=-1).astype(np.float64) * quantised.tensor_scale
    half_gap = np.float64([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[quantised.codes & 7]
    error = np.abs(dequantise(quantised).astype(np.float64) - x)
    clipped = np.abs(x) > E2M1_MAX * steps
    # Four operations are rounded (s · t, the quotient, s · t again, the product); below 2^-126 to whole 2^-149 units,
    # of which s · t may be half a unit off, 6 times.
    slack = 4 * HALF_ULP * 8 * steps + 8 * 2.0**-149
    assert (clipped | (error <= half_gap * steps + slack)).all(), x


@given(x=GROUPS, rule=RULES)
def test_signs_survive_and_zeros_stay_zeros(x: np.ndarray, rule: ScaleRule) -> None:
    decoded = dequantise(quantise_e2m1(x, rule))
    assert (np.signbit(decoded) == np.signbit(x)).all(), x
    assert not decoded[x == 0].any(), x


@given(x=GROUPS, exponent=st.integers(-3, 3))
def test_two_levels_do_not_care_for_powers_of_two(x: np.ndarray, exponent: int) -> None:
    x = np.where(np.abs(x) < 2.0**-60, np.float32(0), np.clip(x, -(2.0**60), 2.0**60).astype(np.float32))
    plain = quantise_e2m1(x, ScaleRule.TENSOR_AND_GROUP)
    scaled = quantise_e2m1(np.ldexp(x, exponent), ScaleRule.TENSOR_AND_GROUP)
    assert np.array_equal(plain.codes, scaled.codes), x
    assert np.array_equal(plain.scales, scaled.scales), x


@given(x=GROUPS)
def test_quantising_what_was_decoded_changes_no_value_of_normal_scale(x: np.ndarray) -> None:
    x = np.clip(x, -2000, 2000)
    once = dequantise(quantise_e2m1(x))
    largest = np.abs(once).reshape(*once.shape[:-1], -1, 16).max(-1)
    kept = np.repeat(largest >= 6 * 2.0**-6, 16, axis=-1)  # then amax decodes to 6 · s again
    again = dequantise(quantise_e2m1(once))
    assert np.array_equal(again[kept], once[kept]), x


@given(
    x=hnp.arrays(np.float32, (2, 8), elements=FLOAT32 | NEAR),
    bits=st.sampled_from(INTEGER_BITS),
    axis=st.sampled_from([0, 1]),
    symmetric=st.booleans(),
)
def test_integers_are_off_by_at_most_half_a_step(x: np.ndarray, bits: int, axis: int, symmetric: bool) -> None:
    quantised = quantise_int(x, bits, 2, axis, symmetric)
    steps = np.repeat(quantised.scales, 2, axis).astype(np.float64)
    error = np.abs(dequantise(quantised).astype(np.float64) - x)
    # The scale is rounded (to whole units of 2^-149 where it is tiny), at most 255 times over; then the result is.
    slack = 255 * (HALF_ULP * steps + 2.0**-150) + HALF_ULP * np.abs(x).max() + 2.0**-149
    assert (error <= steps / 2 + slack).all(), x
