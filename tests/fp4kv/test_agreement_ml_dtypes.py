"""E2M1 and E4M3 against ml_dtypes, bit for bit: independent code, written in C++, for the same formats."""

import ml_dtypes
import numpy as np
import pytest
from fp4kv import decode_e2m1, encode_e2m1, round_to_e4m3
from labkit.expect import expect_codes, expect_values
from labkit.formats import E2M1_TIES, E2M1_VALUES, E4M3_MAX


def oracle_codes(x: np.ndarray) -> np.ndarray:
    """E2M1 codes as ml_dtypes gives them."""
    return x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)


def oracle_e4m3(x: np.ndarray) -> np.ndarray:
    """E4M3 values as ml_dtypes gives them; its cast does not saturate, so the input is clipped."""
    return np.clip(x, -E4M3_MAX, E4M3_MAX).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)


def finite_bfloat16() -> np.ndarray:
    """All 65,280 finite bfloat16 values, as float32."""
    x = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)
    return x[np.isfinite(x)]


def finite_float16() -> np.ndarray:
    """All 63,488 finite float16 values."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return x[np.isfinite(x)]


def with_neighbours(points: np.ndarray) -> np.ndarray:
    """The points, both signs, and the float32 one ulp to each side."""
    points = np.concatenate([points, -points]).astype(np.float32)
    outside, inside = np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(-np.inf))
    return np.concatenate([points, outside, inside])


def e4m3_magnitudes() -> np.ndarray:
    """The 127 magnitudes of E4M3 by byte."""
    return np.arange(127, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)


def e4m3_ties() -> np.ndarray:
    """The 126 points halfway between neighbours, exact in float32."""
    values = e4m3_magnitudes()
    return (values[1:] + values[:-1]) / 2


INPUTS = {
    "finite bfloat16": finite_bfloat16(),
    "finite float16": finite_float16(),
    "E2M1 values and ties": with_neighbours(np.concatenate([E2M1_VALUES, E2M1_TIES])),
    "E4M3 values and ties": with_neighbours(np.concatenate([e4m3_magnitudes(), e4m3_ties()])),
    "ends of float32": with_neighbours(np.float32([2.0**-149, 2.0**-126, 448, 464, 480, 3.4028233e38])),
}


def test_all_finite_bfloat16_are_there() -> None:
    assert len(INPUTS["finite bfloat16"]) == 2 * 255 * 128


@pytest.mark.parametrize("name", INPUTS)
def test_codes_agree(name: str) -> None:
    x = INPUTS[name]
    expect_codes(encode_e2m1(x), oracle_codes(x), given=x)


@pytest.mark.parametrize("name", INPUTS)
def test_e4m3_values_agree(name: str) -> None:
    x = INPUTS[name]
    expect_values(round_to_e4m3(x), oracle_e4m3(x), given=x, signed_zeros=True)


def test_codes_agree_on_random_float32(rng: np.random.Generator) -> None:
    # Random bits: every exponent alike, most of them far outside the format; and a normal distribution, inside it.
    bits = rng.integers(0, 1 << 32, 100_000, np.uint32).view(np.float32)
    x = np.concatenate([bits[np.isfinite(bits)], rng.normal(0, 3, 100_000).astype(np.float32)])
    expect_codes(encode_e2m1(x), oracle_codes(x), given=x)
    expect_values(round_to_e4m3(x), oracle_e4m3(x), given=x, signed_zeros=True)


def test_values_of_all_codes_agree() -> None:
    codes = np.arange(16, dtype=np.uint8)
    expected = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    expect_values(decode_e2m1(codes), expected, given=codes, signed_zeros=True)
