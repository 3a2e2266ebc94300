"""Scales, groups and limits. Inputs of public bug reports stand beside the report's number."""

import inspect
from fractions import Fraction

import numpy as np
import pytest
from fp4kv import dequantise, encode_e2m1, quantise_e2m1, quantise_int, round_to_e4m3
from labkit.expect import expect_close, expect_codes, expect_values
from labkit.formats import FLOAT32_MAX, FLOAT32_TINY, QuantisedE2M1, QuantisedInt, ScaleRule

RULES = list(ScaleRule)
FLOAT32_EPS = 2.0**-23
# s · t and the product with the code's value are rounded once each: at most 2 · 2^-24 of the value.
TWO_ROUNDINGS = FLOAT32_EPS


def group(*values: float) -> np.ndarray:
    """One group of 16: the given values, then zeros."""
    return np.float32([*values, *[0.0] * (16 - len(values))])


def round_trip(x: np.ndarray, rule: ScaleRule = ScaleRule.GROUP) -> np.ndarray:
    """An array after E2M1."""
    return dequantise(quantise_e2m1(x, rule))


def test_division_is_correctly_rounded() -> None:
    scale, tie = 15 * 2.0**-9, np.float32(0.03662109375)
    quantised = quantise_e2m1(group(6 * scale, tie))
    expect_values(quantised.scales, np.float32([scale]), given=scale)
    expect_codes(quantised.codes[:2], np.uint8([7, 2]), given=[6 * scale, tie])

    by_reciprocal = encode_e2m1(tie * (np.float32(1) / quantised.scales))
    expect_codes(by_reciprocal, np.uint8([3]), given="the same by a reciprocal: the test can tell")


def test_division_agrees_with_fractions_at_every_tie_of_every_scale() -> None:
    scales = np.unique(round_to_e4m3(np.arange(1, 448 * 512 + 1, dtype=np.float32) / 512))
    assert len(scales) == 126
    for scale in scales:
        ties = np.float32([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]) * scale
        x = np.concatenate([[6 * scale], ties, np.nextafter(ties, np.float32(0)), [0]]).astype(np.float32)
        expected = [nearest_code(Fraction(float(value)) / Fraction(float(scale))) for value in x]
        expect_codes(quantise_e2m1(x).codes, np.uint8(expected), given=x)


def nearest_code(quotient: Fraction) -> int:
    """The E2M1 code nearest to an exact number of at least 0, by distance; of two, the even one."""
    values = [Fraction(value) for value in (0, 0.5, 1, 1.5, 2, 3, 4, 6)]
    return min(range(8), key=lambda code: (abs(quotient - values[code]), code % 2))


@pytest.mark.parametrize(
    ("amax", "scale"),
    [
        (6.375, 1.0),  # the tie between 1 and 1.125: the largest element clips by 5.9 %
        (6.3750005, 1.125),
        (0.0, 2.0**-9),
        (3 * 2.0**-9, 2.0**-9),
        (15 * 2.0**-9, 2 * 2.0**-9),
        (2688.0, 448.0),
        (65504.0, 448.0),
        (3.4028235e38, 448.0),
    ],
)
def test_group_scale_of_amax(amax: float, scale: float) -> None:
    expect_values(quantise_e2m1(group(-amax)).scales, np.float32([scale]), given=amax)


@pytest.mark.parametrize(("constant", "decoded"), [(0.003, 0.0029296875), (0.0005, 0.0009765625), (0.0004, 0.0)])
def test_small_constant_groups(constant: float, decoded: float) -> None:
    x = np.full(16, constant, np.float32)
    expect_values(round_trip(x), np.full(16, decoded, np.float32), given=x)


def test_one_level_stops_at_2688_and_two_levels_do_not() -> None:
    # kekzl/imp 1544: without a tensor scale, groups with more clip
    x = group(5376, 12)
    expect_values(round_trip(x)[:1], np.float32([2688]), given=x)
    expect_values(round_trip(x, ScaleRule.TENSOR_AND_GROUP)[:1], np.float32([5376]), given=x)
    assert quantise_e2m1(x, ScaleRule.TENSOR_AND_GROUP).tensor_scale == 2.0


def test_two_levels_divide_in_the_order_of_the_rule() -> None:
    # (amax / 6) / t is 1.0625, a tie, and goes to 1; amax / (6 · t) and (amax / t) / 6 are one ulp more.
    amax, t = np.float32(6.363142), np.float32(2683) / np.float32(2688)
    x = np.concatenate([group(2683), group(amax)])
    expect_values(quantise_e2m1(x, ScaleRule.TENSOR_AND_GROUP).scales[1:], np.float32([1]), given=x)
    others = np.array([amax / (np.float32(6) * t), amax / t / np.float32(6)])
    expect_values(round_to_e4m3(others), np.float32([1.125, 1.125]), given="another order: the test can tell")


def test_two_levels_lose_what_is_far_below_the_largest() -> None:
    # Beside 2688, t is 1 and the smallest scale 2^-9: what is at most a quarter of that becomes zero.
    quarter = np.float32(2.0**-11)
    x = np.concatenate([group(2688), group(quarter), group(np.nextafter(quarter, np.float32(1)))])
    expect_values(round_trip(x, ScaleRule.TENSOR_AND_GROUP)[[0, 16, 32]], np.float32([2688, 0, 2.0**-10]), given=x)


@pytest.mark.parametrize("rule", RULES)
def test_zero_groups_decode_to_zeros_and_leave_neighbours_alone(rule: ScaleRule) -> None:
    # NVIDIA/Model-Optimizer PR 1397 and flashinfer PR 3448: NaN from a group of zeros
    x = np.stack([group(), np.full(16, 0.01, np.float32), group()])
    decoded = round_trip(x, rule)
    expect_values(decoded[[0, 2]], np.zeros((2, 16), np.float32), given=x)
    expect_values(decoded[1], round_trip(x[1], rule), given=x[1])


@pytest.mark.parametrize("rule", RULES)
def test_a_tensor_of_zeros_has_finite_scales(rule: ScaleRule) -> None:
    # compressed-tensors PR 595: infinite tensor scale
    quantised = quantise_e2m1(np.zeros((4, 64), np.float32), rule)
    assert np.isfinite(quantised.scales).all()
    assert 0 < quantised.tensor_scale < np.inf
    expect_values(dequantise(quantised), np.zeros((4, 64), np.float32), given="zeros of shape (4, 64)")


def test_negative_zero_keeps_its_code() -> None:
    expect_codes(quantise_e2m1(group(6, -0.0)).codes[:3], np.uint8([7, 8, 0]), given=[6.0, -0.0, 0.0])


@pytest.mark.parametrize("exponent", [-149, -148, -145, -140, -127, -126, -125, -120, 0, 100, 126, 127])
def test_two_levels_reach_from_the_smallest_to_the_largest_float32(exponent: int, rng: np.random.Generator) -> None:
    largest = np.float32(np.ldexp(np.float64(2) - 2.0**-23, exponent)) or FLOAT32_TINY
    x = np.clip(rng.uniform(-1, 1, (4, 32)).astype(np.float32) * largest, -largest, largest)
    x[0, 0] = largest

    decoded = round_trip(x, ScaleRule.TENSOR_AND_GROUP)

    # Half the widest gap, 1 step, under a scale of at most 1.0625 · amax/6; t and s · t may be off by half a unit of
    # 2^-149 each, which the codes multiply by at most 2688, and results are whole units.
    bound = 1.07 * float(largest) / 6 + 2.0**-149 * (2688 / 2 + 6)
    expect_close(decoded, x, min(bound, float(FLOAT32_MAX)), given=x)


def test_the_largest_float32_does_not_overflow() -> None:
    bits = np.uint32(0x7F7FFFFF) - np.arange(1 << 16, dtype=np.uint32)
    amax = bits.view(np.float32)
    t = amax / np.float32(2688)
    steps = np.float32(448) * t  # what dequantise multiplies by 6; a warning would fail the test
    assert np.isfinite(np.float32(6) * steps).all()
    decoded = round_trip(np.full((1, 16), FLOAT32_MAX), ScaleRule.TENSOR_AND_GROUP)
    expect_close(decoded, np.full((1, 16), FLOAT32_MAX), TWO_ROUNDINGS * float(FLOAT32_MAX), given="largest float32")


@pytest.mark.parametrize("rule", RULES)
def test_groups_of_a_larger_array_are_independent_of_its_parts(rule: ScaleRule, rng: np.random.Generator) -> None:
    # More groups than are computed at a time; the tensor's amax sits in the last one.
    x = rng.normal(size=(3, 5, 16 * 700)).astype(np.float32)
    x[-1, -1, -1] = 9
    whole = quantise_e2m1(x, rule)
    for row in np.ndindex(3, 5):
        part = quantise_e2m1(np.concatenate([x[row], group(9)]), rule)
        expect_codes(part.codes[:-16], whole.codes[row], given=f"row {row}")
        expect_values(part.scales[:-1], whole.scales[row], given=f"row {row}")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_float_types_are_read_as_float32(rule: ScaleRule, dtype: type, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 32)).astype(dtype)
    got, expected = quantise_e2m1(x, rule), quantise_e2m1(x.astype(np.float32), rule)
    expect_codes(got.codes, expected.codes, given=x)
    expect_values(got.scales, expected.scales, given=x)
    assert got.tensor_scale == expected.tensor_scale


def test_float64_is_rounded_to_float32_first() -> None:
    x = np.array([6, 0.25 + 2.0**-40, *[0.0] * 14])  # a tie once it is float32
    expect_codes(quantise_e2m1(x).codes[:2], np.uint8([7, 0]), given=x)


@pytest.mark.parametrize("bad", [np.nan, -np.inf, 1e39])
def test_values_that_are_not_finite_in_float32_are_named(bad: float) -> None:
    x = np.ones((2, 16))
    x[1, 4] = bad
    with pytest.raises(ValueError, match=r"x: expected finite float32 values, got (nan|-inf|inf) at index \(1, 4\)"):
        quantise_e2m1(x)
    with pytest.raises(ValueError, match=r"at index \(1, 4\)"):
        quantise_int(x, bits=4, group=16)


@pytest.mark.parametrize("shape", [(), (1,), (72,), (24,), (16, 8)])
def test_widths_that_16_does_not_divide_are_refused(shape: tuple[int, ...]) -> None:
    # flashinfer PR 3534: head widths of 72 and 24
    with pytest.raises(ValueError, match=r"x: expected a last axis that is a multiple of 16, got shape \("):
        inspect.unwrap(quantise_e2m1)(np.ones(shape, np.float32))


def test_a_scale_rule_by_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a valid ScaleRule"):
        inspect.unwrap(quantise_e2m1)(group(1), "tensor")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 32)])
def test_quantising_nothing_gives_nothing(shape: tuple[int, ...], rule: ScaleRule) -> None:
    quantised = quantise_e2m1(np.zeros(shape, np.float32), rule)
    assert quantised.scales.shape == (*shape[:-1], shape[-1] // 16)
    expect_values(dequantise(quantised), np.zeros(shape, np.float32), given=shape)


def test_arrays_that_are_not_contiguous_are_read_by_position(rng: np.random.Generator) -> None:
    x = rng.normal(size=(32, 6)).astype(np.float32)
    expect_codes(quantise_e2m1(x.T[::2]).codes, quantise_e2m1(x.T[::2].copy()).codes, given="every other column")


def test_inputs_are_left_alone(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 32)).astype(np.float32)
    before = x.copy()
    for rule in RULES:
        round_trip(x, rule)
    quantise_int(x, bits=4, group=16)
    expect_values(x, before, given="the input after the calls")


def test_dequantise_applies_both_scales() -> None:
    # flashinfer 4979, 1023, PR 3097: a scale that is accepted and not applied
    codes = np.full((1, 32), 3, np.uint8)
    quantised = QuantisedE2M1(codes, np.float32([[2, 4]]), 0.5)
    expected = np.repeat(np.float32([[1.5, 3]]), 16, axis=1)
    expect_values(dequantise(quantised), expected, given="codes 3, scales 2 and 4, t = 0.5")


@pytest.mark.parametrize("scales", [np.ones((1, 1)), np.ones((1, 3)), np.ones((2, 2)), np.ones(2)])
def test_dequantise_refuses_scales_of_other_codes(scales: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"scales: expected one per group of codes of shape \(1, 32\)"):
        dequantise(QuantisedE2M1(np.zeros((1, 32), np.uint8), scales.astype(np.float32), 1.0))
    integers = QuantisedInt(np.zeros((1, 32), np.int16), scales.astype(np.float32), scales.astype(np.float32), 16, -1)
    with pytest.raises(ValueError, match=r"scales: expected one per group of codes of shape \(1, 32\)"):
        dequantise(integers)


def test_dequantise_refuses_packed_bytes() -> None:
    with pytest.raises(ValueError, match="scales: expected one per group"):
        dequantise(QuantisedE2M1(np.zeros((1, 16), np.uint8), np.ones((1, 2), np.float32), 1.0))
    with pytest.raises(ValueError, match="codes: expected codes from 0 to 15, got 114 at index"):
        dequantise(QuantisedE2M1(np.full((1, 16), 0x72, np.uint8), np.ones((1, 1), np.float32), 1.0))
