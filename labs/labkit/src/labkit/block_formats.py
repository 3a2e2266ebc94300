"""Two formats with power-of-two scales, built from the student's own parts: MXFP4, and FP8 under UE8M0.

They are frames: groups, scales and reshaping are here, the rounding is what the caller hands over.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float32

from labkit.formats import UE8M0_GROUP_LENGTH

Array = Float32[np.ndarray, "... n"]
Function = Callable[[np.ndarray], np.ndarray]

E2M1_MAX_EXPONENT = 2  # the largest power of two in E2M1 is 4 = 2^2
FP8_MAX = 240 * 2.0**120  # the largest E4M3 value times a power of two that float32 holds; what is larger saturates
SMALLEST_AMAX = 2.0**-124  # what a smaller amax counts as: the scale, a quarter of it, stays a normal float32


def round_trip_mxfp4(x: Array, encode_e2m1: Function, decode_e2m1: Function) -> Array:
    """Return x after E2M1 with one power-of-two scale per 32 elements, 4.25 bits per element.

    The scale is 2^(floor(log2 amax) - 2), the floor rule: a group whose amax lies above 6/4 of a power of two clips.

    Source: OCP Microscaling Formats (MX) v1.0, section 6.3.
    """
    groups = _groups(x)
    amax = np.abs(groups).max(axis=-1, keepdims=True).astype(np.float64)
    exponent = np.floor(np.log2(np.maximum(amax, SMALLEST_AMAX))) - E2M1_MAX_EXPONENT
    scale = _power_of_two(exponent.astype(np.int32))
    return np.reshape(decode_e2m1(encode_e2m1(groups / scale)) * scale, x.shape)


def round_trip_fp8(x: Array, round_to_e4m3: Function, ue8m0_exponent: Function) -> Array:
    """Return x after E4M3 with one UE8M0 scale per 32 elements, 8.25 bits per element.

    Source: vLLM, `fused_compress_quant_cache.py`, window cache of DeepSeek V4.1.
    """
    groups = np.clip(_groups(x), -FP8_MAX, FP8_MAX)
    scale = _power_of_two(ue8m0_exponent(np.abs(groups).max(axis=-1, keepdims=True)))
    return np.reshape(round_to_e4m3(groups / scale) * scale, x.shape)


def _groups(x: Array) -> Float32[np.ndarray, "... n//32 32"]:
    """Return x with its last axis cut into groups of 32."""
    if x.ndim == 0 or x.shape[-1] % UE8M0_GROUP_LENGTH:
        raise ValueError(f"x: expected a last axis that is a multiple of {UE8M0_GROUP_LENGTH}, got shape {x.shape}")
    return x.reshape(*x.shape[:-1], x.shape[-1] // UE8M0_GROUP_LENGTH, UE8M0_GROUP_LENGTH)


def _power_of_two(exponent: np.ndarray) -> np.ndarray:
    return np.asarray(np.ldexp(np.float32(1), exponent))
