"""Tables: all codes, all ties, byte order, edges. Inputs of public bug reports stand beside the report's number."""

import inspect
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fp4kv import decode_e2m1, encode_e2m1, pack_nibbles, round_to_e4m3, ue8m0_exponent, unpack_nibbles
from labkit.expect import expect_bytes, expect_codes, expect_values
from labkit.formats import E2M1_TIES, E2M1_VALUES

ALL_CODES = np.arange(16, dtype=np.uint8)
FLOATS = [np.float16, np.float32, np.float64]


def unchecked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a student's kernel has it, without shape checks: what it does about wrong input itself."""
    return inspect.unwrap(function)


@pytest.mark.parametrize("dtype", FLOATS)
def test_all_codes_survive_the_round_trip(dtype: type) -> None:
    # tenstorrent/tt-metal 51971: two of sixteen codes did not
    expect_codes(encode_e2m1(decode_e2m1(ALL_CODES).astype(dtype)), ALL_CODES, given=ALL_CODES)


@pytest.mark.parametrize("dtype", FLOATS)
def test_encode_breaks_ties_to_even(dtype: type) -> None:
    # ROCm/aiter PR 3992: rounded half away
    ties = E2M1_TIES.astype(dtype)
    expect_codes(encode_e2m1(ties), np.uint8([0, 2, 2, 4, 4, 6, 6]), given=ties)
    expect_codes(encode_e2m1(-ties), np.uint8([8, 10, 10, 12, 12, 14, 14]), given=-ties)


@pytest.mark.parametrize("dtype", FLOATS)
def test_encode_tells_the_neighbours_of_ties_apart(dtype: type) -> None:
    ties = E2M1_TIES.astype(dtype)
    above, below = np.nextafter(ties, dtype(9)), np.nextafter(ties, dtype(0))
    expect_codes(encode_e2m1(above), np.arange(1, 8, dtype=np.uint8), given=above)
    expect_codes(encode_e2m1(below), np.arange(0, 7, dtype=np.uint8), given=below)


@pytest.mark.parametrize(
    ("x", "code"),
    [
        (0.0, 0),
        (-0.0, 8),
        (0.25000006, 1),  # tt-metal 51971: the subnormal was lost
        (-0.25, 8),  # ml_dtypes 0.5.1: sign of a value that becomes zero
        (-0.3, 9),
        (5.0001, 7),
        (7.0, 7),
        (-65504.0, 15),
        (3.4028235e38, 7),
        (1e-45, 0),
        (-1e-45, 8),
    ],
)
def test_encode_of_edges(x: float, code: int) -> None:
    expect_codes(encode_e2m1(np.float32([x])), np.uint8([code]), given=x)


def test_encode_rounds_float64_once() -> None:
    x = np.array([0.25 + 2.0**-40, 5 + 2.0**-40, 1e300])  # float32 would see the ties themselves, and infinity
    expect_codes(encode_e2m1(x), np.uint8([1, 7, 7]), given=x)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3, 4)])
def test_encode_and_decode_keep_the_shape(shape: tuple[int, ...]) -> None:
    codes = encode_e2m1(np.ones(shape, np.float32))
    expect_codes(codes, np.full(shape, 2, np.uint8), given=f"ones of shape {shape}")
    expect_values(decode_e2m1(codes), np.ones(shape, np.float32), given=codes)


def test_encode_reads_arrays_that_are_not_contiguous() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    expect_codes(encode_e2m1(x.T[::2]), encode_e2m1(x.T[::2].copy()), given=x.T[::2])


def test_encode_leaves_its_input_alone() -> None:
    x = np.float32([-3, 0.3, 9])
    encode_e2m1(x)
    expect_values(x, np.float32([-3, 0.3, 9]), given="the input after the call")


@pytest.mark.parametrize("function", [encode_e2m1, round_to_e4m3, ue8m0_exponent])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_value_that_is_not_finite_is_named(function: Callable[..., Any], bad: float) -> None:
    x = np.ones((2, 3), np.float32)
    x[1, 1:] = bad
    with pytest.raises(ValueError, match=rf"expected finite values.*got {bad} at index \(1, 1\)"):
        function(x)


@pytest.mark.parametrize("function", [encode_e2m1, round_to_e4m3, ue8m0_exponent])
def test_a_lone_nan_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="got nan at index"):
        function(np.array(np.nan))


def test_decode_is_the_table() -> None:
    expected = np.concatenate([E2M1_VALUES, -E2M1_VALUES])
    expect_values(decode_e2m1(ALL_CODES), expected, given=ALL_CODES, signed_zeros=True)


@pytest.mark.parametrize("function", [decode_e2m1, pack_nibbles])
def test_codes_above_fifteen_are_refused_by_index(function: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"codes: expected codes from 0 to 15, got 16 at index \(0, 3\)"):
        function(np.uint8([[0, 15, 3, 16], [255, 0, 0, 0]]))


@pytest.mark.parametrize("function", [decode_e2m1, pack_nibbles, unpack_nibbles])
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32, np.bool_])
def test_codes_and_bytes_of_another_dtype_are_refused(function: Callable[..., Any], dtype: type) -> None:
    with pytest.raises(TypeError, match=f"expected uint8, got {np.dtype(dtype)}"):
        unchecked(function)(np.ones(2, dtype))


@pytest.mark.parametrize(
    ("values", "byte"),
    [((1.0, 6.0), 0x72), ((-0.5, 3.0), 0x59)],  # torchao PR 3123: the halves changed places
)
def test_pack_puts_the_first_code_in_the_low_half(values: tuple[float, float], byte: int) -> None:
    codes = encode_e2m1(np.float32(values))
    expect_bytes(pack_nibbles(codes), np.uint8([byte]), given=codes)


def test_all_bytes_survive_the_round_trip() -> None:
    # vLLM PR 38479: a mask of two bits was left in a path of four
    packed = np.arange(256, dtype=np.uint8).reshape(4, 64)
    expect_bytes(pack_nibbles(unpack_nibbles(packed)), packed, given=packed)


def test_unpack_undoes_pack_along_the_last_axis(rng: np.random.Generator) -> None:
    codes = rng.integers(0, 16, (2, 3, 8), np.uint8)
    expect_codes(unpack_nibbles(pack_nibbles(codes)), codes, given=codes)
    expect_codes(unpack_nibbles(pack_nibbles(codes.T[:, :, :2])), codes.T[:, :, :2], given=codes.T[:, :, :2])


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4)])
def test_pack_and_unpack_of_nothing(shape: tuple[int, ...]) -> None:
    packed = pack_nibbles(np.zeros(shape, np.uint8))
    assert packed.shape == (*shape[:-1], shape[-1] // 2)
    assert unpack_nibbles(packed).shape == shape


@pytest.mark.parametrize("shape", [(), (1,), (2, 7)])
def test_pack_refuses_what_has_no_pairs(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"codes: expected a last axis of even length, got shape \("):
        unchecked(pack_nibbles)(np.zeros(shape, np.uint8))


def test_unpack_refuses_a_lone_byte() -> None:
    with pytest.raises(ValueError, match="packed: expected at least one axis"):
        unchecked(unpack_nibbles)(np.array(3, np.uint8))


def test_e4m3_keeps_every_value_of_the_format() -> None:
    # sglang PR 40581: a software encoder clipped at 256
    values = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    values = values[~np.isnan(values)]
    expect_values(round_to_e4m3(values), values, given=values, signed_zeros=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("x", "rounded"),
    [
        (17.0, 16.0),  # sglang PR 40581: the tie between 16 and 18
        (19.0, 20.0),
        (448.0, 448.0),
        (464.0, 448.0),  # a tie; pytorch 178817: an ordinary cast makes NaN of more
        (465.0, 448.0),
        (-465.0, -448.0),
        (65504.0, 448.0),
        (2.0**-10, 0.0),
        (3 * 2.0**-10, 2.0**-8),
        (-(2.0**-11), -0.0),
    ],
)
def test_e4m3_of_edges(x: float, rounded: float, dtype: type) -> None:
    expect_values(round_to_e4m3(np.array([x], dtype)), np.float32([rounded]), given=x, signed_zeros=True)


def test_e4m3_rounds_float64_once() -> None:
    x = np.array([17 + 2.0**-40, 2.0**-10 + 2.0**-60, 1e300, 5e-324])
    expect_values(round_to_e4m3(x), np.float32([18, 2.0**-9, 448, 0]), given=x)


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_e4m3_keeps_the_shape(shape: tuple[int, ...]) -> None:
    expect_values(round_to_e4m3(np.full(shape, 1.01)), np.ones(shape, np.float32), given=f"1.01, shape {shape}")


@pytest.mark.parametrize("exponent", [-30, -21, -8, 0, 1, 17, 118])
def test_ue8m0_is_exact_beside_the_limit(exponent: int) -> None:
    limit = np.float32(448) * np.float32(2.0) ** np.float32(exponent)
    amax = np.array([np.nextafter(limit, np.float32(0)), limit, np.nextafter(limit, np.float32(np.inf))])
    expected = np.maximum([exponent, exponent, exponent + 1], -22)
    expect_values(ue8m0_exponent(amax), expected, given=amax, any_width=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("amax", "exponent"),
    [(448, 0), (448.5, 1), (224, -1), (1.0, -8), (0, -22), (1e-4, -22), (256.0, 0), (512.0, 1)],
)
def test_ue8m0_of_examples(amax: float, exponent: int, dtype: type) -> None:
    expect_values(ue8m0_exponent(np.array([amax], dtype)), [exponent], given=amax, any_width=True)


def test_ue8m0_never_asks_for_the_byte_of_nan() -> None:
    # JustVugg/colibri PR 1041: byte 255 was read as infinity
    amax = np.float32([0, 1e-45, np.finfo(np.float32).max])
    expect_values(ue8m0_exponent(amax) + 127, [105, 105, 247], given=amax, any_width=True)
    with pytest.raises(ValueError, match=r"amax: expected values up to 448 · 2\^127, got 1e\+300"):
        ue8m0_exponent(np.array([1.0, 1e300]))


def test_ue8m0_refuses_a_negative_magnitude() -> None:
    with pytest.raises(ValueError, match=r"amax: expected finite values of at least 0, got -1.0 at index \(1,\)"):
        ue8m0_exponent(np.float32([0, -1]))
