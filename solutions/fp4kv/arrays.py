"""Tasks of `lab02_formats` on whole arrays: array ↔ (codes, scales).

Letters: `x` value, `s` scale of a group, `t` tensor scale.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Float32
from labkit.formats import (
    E2M1_MAX,
    E4M3_MAX,
    E4M3_MIN_SUBNORMAL,
    FLOAT32_MAX,
    FLOAT32_TINY,
    GROUP_LENGTH,
    INTEGER_BITS,
    TWO_LEVEL_RANGE,
    QuantisedE2M1,
    QuantisedInt,
    ScaleRule,
)

from fp4kv.codes import decode_e2m1, encode_e2m1, round_to_e4m3


def quantise_e2m1(x: Float[np.ndarray, "... n"], scale_rule: ScaleRule = ScaleRule.GROUP) -> QuantisedE2M1:
    """Return E2M1 codes with one E4M3 scale per group of 16 along the last axis.

    Everything is computed in float32, and x is read as float32. With amax the largest magnitude of a group:

    - `GROUP`: s = E4M3(clamp(amax / 6, 2^-9, 448)), code = E2M1(x / s);
    - `TENSOR_AND_GROUP`: t = (largest magnitude of x) / 2688, s = E4M3(clamp((amax / 6) / t, 2^-9, 448)),
      code = E2M1(x / (s · t)). Neither t nor s · t is less than `FLOAT32_TINY`: nothing is divided by zero.

    Divisions are divisions: a product with the reciprocal rounds twice and moves ties.

    Raises
    ------
    ValueError
        If a value is NaN or infinite in float32 (the message names the index of the first), or the last axis is
        missing or not a multiple of 16.

    Example
    -------
    >>> codes, scales, t = quantise_e2m1(np.arange(-6.0, 10.0))
    >>> scales
    array([1.5], dtype=float32)
    >>> codes[:8]
    array([14, 13, 13, 12, 11,  9,  0,  1], dtype=uint8)

    Source: DeepSeek V4.1 as in vLLM's `fused_compress_quant_cache.py` (`GROUP`); NVIDIA NVFP4 (`TENSOR_AND_GROUP`).
    """
    x = _finite_float32(x)
    if x.ndim == 0 or x.shape[-1] % GROUP_LENGTH:
        raise ValueError(f"x: expected a last axis that is a multiple of {GROUP_LENGTH}, got shape {x.shape}")
    groups = x.reshape(-1, GROUP_LENGTH)
    amax = np.abs(groups.T, order="C").max(axis=0)  # down columns, NumPy compares many groups at once

    t = np.float32(1)
    if ScaleRule(scale_rule) is ScaleRule.TENSOR_AND_GROUP:
        t = np.maximum(amax.max(initial=0) / np.float32(TWO_LEVEL_RANGE), FLOAT32_TINY)
    scales = round_to_e4m3(np.clip(amax / np.float32(E2M1_MAX) / t, E4M3_MIN_SUBNORMAL, E4M3_MAX))
    steps = np.maximum(scales * t, FLOAT32_TINY)

    codes = np.empty(groups.shape, np.uint8)
    for part in _parts(len(groups)):
        codes[part] = encode_e2m1(groups[part] / steps[part, None])
    scales = scales.reshape(*x.shape[:-1], x.shape[-1] // GROUP_LENGTH)
    return QuantisedE2M1(codes.reshape(x.shape), scales, float(t))


def _finite_float32(x: Float[np.ndarray, "*shape"]) -> Float32[np.ndarray, "*shape"]:
    """Return the values as float32; refuse the first that is NaN or infinite there."""
    with np.errstate(over="ignore"):
        x = np.asarray(x, np.float32)
    if not np.isfinite(x).all():
        index = tuple(np.argwhere(~np.isfinite(x))[0].tolist())
        raise ValueError(f"x: expected finite float32 values, got {x[index]} at index {index}")
    return x


def _parts(n_groups: int, length: int = 4096) -> Iterator[slice]:
    """Yield slices of so few groups that what is computed from one stays in the processor's cache."""
    return (slice(start, start + length) for start in range(0, n_groups, length))


def quantise_int(
    x: Float[np.ndarray, "*shape"], bits: int, group: int, axis: int = -1, symmetric: bool = True
) -> QuantisedInt:
    """Return 8, 6, 4, 3 or 2 bit codes with one float32 scale per group along an axis.

    - symmetric: s = amax / (2^(bits-1) - 1), codes from -(2^(bits-1) - 1) to 2^(bits-1) - 1, minimums are zeros;
    - affine: m = the group's minimum, s = (max - m) / (2^bits - 1), codes of (x - m) / s from 0 to 2^bits - 1.

    Codes are rounded to nearest, ties to even. s is at least `FLOAT32_TINY`, so a zero group decodes to zeros and a
    constant group of affine codes is exact. x is read as float32; only s is rounded to float32, the rest is float64.

    Raises
    ------
    ValueError
        If a value is NaN or infinite in float32 (the message names the index of the first), `bits` is not one of
        8, 6, 4, 3, 2, `axis` is not an axis of x, or its length is not a multiple of `group`.

    Example
    -------
    >>> quantise_int(np.array([0.0, 1.0, 2.0, 10.0]), bits=2, group=4, symmetric=False).codes
    array([0, 0, 1, 3], dtype=int16)
    """
    if bits not in INTEGER_BITS:
        raise ValueError(f"bits: expected one of {INTEGER_BITS}, got {bits}")
    x = _finite_float32(x)
    groups, inner = _split_axis(x.astype(np.float64), group, axis)
    smallest, largest = groups.min(inner, keepdims=True), groups.max(inner, keepdims=True)

    if symmetric:
        levels = 2 ** (bits - 1) - 1
        low, span = np.zeros_like(smallest), np.maximum(largest, -smallest)
    else:
        levels = 2**bits - 1
        low, span = smallest, largest - smallest

    scales = np.maximum((span / levels).astype(np.float32), FLOAT32_TINY)
    codes = np.clip(np.rint((groups - low) / scales), -levels, levels).astype(np.int16)
    minimums = low.astype(np.float32)
    return QuantisedInt(codes.reshape(x.shape), scales.squeeze(inner), minimums.squeeze(inner), group, axis)


def _split_axis(x: np.ndarray, group: int, axis: int) -> tuple[np.ndarray, int]:
    """Return x with `axis` split into (groups, elements), and which axis the elements are now on."""
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis: expected an axis of an array of shape {x.shape}, got {axis}")
    axis %= x.ndim
    if group < 1 or x.shape[axis] % group:
        raise ValueError(f"group: expected a divisor of {x.shape[axis]}, the length of axis {axis}, got {group}")
    return x.reshape(*x.shape[:axis], x.shape[axis] // group, group, *x.shape[axis + 1 :]), axis + 1


def dequantise(quantised: QuantisedE2M1 | QuantisedInt) -> Float32[np.ndarray, "..."]:
    """Return the float32 array that a quantised array stands for.

    - E2M1: value of the code times (s · t), in float32;
    - integers: minimum + code · s, rounded once to float32.

    The result saturates at the largest float32.

    Raises
    ------
    TypeError, ValueError
        If the codes are none, or the shapes of codes and scales do not belong together.

    Example
    -------
    >>> dequantise(quantise_int(np.array([0.0, 1.0, 2.0, 10.0]), bits=4, group=4, symmetric=False))[:2]
    array([0.       , 0.6666667], dtype=float32)
    """
    if isinstance(quantised, QuantisedE2M1):
        return _dequantise_e2m1(quantised)

    codes, scales, minimums, group, axis = quantised
    _refuse_other_shape(np.repeat(scales, group, axis).shape, codes.shape)
    values = np.repeat(minimums, group, axis) + codes * np.repeat(scales.astype(np.float64), group, axis)
    return np.asarray(np.clip(values, -FLOAT32_MAX, FLOAT32_MAX), np.float32)


def _dequantise_e2m1(quantised: QuantisedE2M1) -> Float32[np.ndarray, "... n"]:
    """Return value · (s · t), part by part."""
    codes, scales, tensor_scale = quantised
    _refuse_other_shape((*scales.shape[:-1], scales.shape[-1] * GROUP_LENGTH), codes.shape)
    groups = codes.reshape(-1, GROUP_LENGTH)
    steps = scales.reshape(-1, 1) * np.float32(tensor_scale)

    values = np.empty(groups.shape, np.float32)
    for part in _parts(len(groups)):
        values[part] = decode_e2m1(groups[part]) * steps[part]
    return np.reshape(values, codes.shape)


def _refuse_other_shape(covered: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raise a ValueError unless the scales cover the codes exactly."""
    if covered != shape:
        raise ValueError(f"scales: expected one per group of codes of shape {shape}, got scales for {covered}")
