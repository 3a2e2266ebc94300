"""MXFP4 and FP8 under power-of-two scales: the frames, with the reference's rounding in them."""

import ml_dtypes
import numpy as np
import pytest
from fp4kv import decode_e2m1, encode_e2m1, round_to_e4m3, ue8m0_exponent
from labkit.block_formats import round_trip_fp8, round_trip_mxfp4
from labkit.expect import expect_values

SIZES = [1e-30, 1e-3, 1.0, 1e3, 1e30]


def mxfp4(x: np.ndarray) -> np.ndarray:
    """MXFP4 with the reference's codes."""
    return round_trip_mxfp4(x, encode_e2m1, decode_e2m1)


def fp8(x: np.ndarray) -> np.ndarray:
    """FP8 with the reference's rounding and exponents."""
    return round_trip_fp8(x, round_to_e4m3, ue8m0_exponent)


@pytest.mark.parametrize("amax", [6.0, 6.5, 7.0, 7.99])
def test_the_floor_rule_clips_above_six(amax: float) -> None:
    x = np.float32([amax, 1, *[0] * 30])
    expect_values(mxfp4(x)[:2], np.float32([6, 1]), given=x)


@pytest.mark.parametrize("size", SIZES)
def test_mxfp4_agrees_with_ml_dtypes(size: float, rng: np.random.Generator) -> None:
    x = (rng.normal(size=(64, 32)) * size).astype(np.float32)
    scale = 2.0 ** (np.floor(np.log2(np.abs(x).max(axis=-1, keepdims=True).astype(np.float64))) - 2)
    expected = np.clip(x / scale, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float64) * scale
    expect_values(mxfp4(x), expected.astype(np.float32), given=x)


@pytest.mark.parametrize("size", SIZES)
def test_fp8_agrees_with_ml_dtypes(size: float, rng: np.random.Generator) -> None:
    x = (rng.normal(size=(64, 32)) * size).astype(np.float32)
    amax = np.maximum(np.abs(x).max(axis=-1, keepdims=True).astype(np.float64), 1e-4)
    scale = 2.0 ** np.ceil(np.log2(amax / 448))
    expected = (x / scale).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * scale
    expect_values(fp8(x), expected.astype(np.float32), given=x)


@pytest.mark.parametrize("round_trip", [mxfp4, fp8])
def test_zeros_stay_zeros(round_trip) -> None:
    expect_values(round_trip(np.zeros((2, 64), np.float32)), np.zeros((2, 64), np.float32), given="zeros")


@pytest.mark.parametrize("round_trip", [mxfp4, fp8])
@pytest.mark.parametrize("shape", [(16,), (2, 48)])
def test_widths_that_32_does_not_divide_are_refused(round_trip, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="x: expected a last axis that is a multiple of 32"):
        round_trip(np.ones(shape, np.float32))
