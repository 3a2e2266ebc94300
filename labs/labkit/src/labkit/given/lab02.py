"""The nine functions of lab 2, ready to use. Rounding is ml_dtypes'; what is refused is what lab 2 refuses."""

import ml_dtypes
import numpy as np
from jaxtyping import Float, Float32, Int, UInt8

from labkit.formats import (
    E2M1_MAX,
    E4M3_MAX,
    E4M3_MIN_SUBNORMAL,
    FLOAT32_MAX,
    FLOAT32_TINY,
    GROUP_LENGTH,
    INTEGER_BITS,
    TWO_LEVEL_RANGE,
    UE8M0_AMAX_FLOOR,
    UE8M0_EXPONENT_MAX,
    QuantisedE2M1,
    QuantisedInt,
    ScaleRule,
)

__all__ = [
    "decode_e2m1",
    "dequantise",
    "encode_e2m1",
    "pack_nibbles",
    "quantise_e2m1",
    "quantise_int",
    "round_to_e4m3",
    "ue8m0_exponent",
    "unpack_nibbles",
]

Array = np.ndarray


def encode_e2m1(x: Float[np.ndarray, "..."]) -> UInt8[np.ndarray, "..."]:
    """Return the 4-bit E2M1 code nearest to each value, ties to even; see lab 2."""
    _refuse(~np.isfinite(x), "x", x, "finite values")
    codes: Array = _to_odd_float32(x).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return codes


def decode_e2m1(codes: UInt8[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """Return the value of each 4-bit E2M1 code; see lab 2."""
    _refuse_other_than_codes(codes)
    return np.asarray(codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32))


def pack_nibbles(codes: UInt8[np.ndarray, "... n"]) -> UInt8[np.ndarray, "... n//2"]:
    """Return two codes per byte, the first in the low half; see lab 2."""
    _refuse_other_than_codes(codes)
    if codes.ndim == 0 or codes.shape[-1] % 2:
        raise ValueError(f"codes: expected a last axis of even length, got shape {codes.shape}")
    bits = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., :4]
    return np.packbits(bits.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def unpack_nibbles(packed: UInt8[np.ndarray, "... m"]) -> UInt8[np.ndarray, "... 2*m"]:
    """Return the two codes of each byte, the low half first; see lab 2."""
    if packed.dtype != np.uint8:
        raise TypeError(f"packed: expected uint8, got {packed.dtype}")
    if packed.ndim == 0:
        raise ValueError("packed: expected at least one axis, got shape ()")
    halves = np.stack([packed % 16, packed // 16], axis=-1)
    return halves.reshape(*packed.shape[:-1], 2 * packed.shape[-1])


def round_to_e4m3(x: Float[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """Return the E4M3 value nearest to each value, ties to even, saturating at ±448; see lab 2."""
    _refuse(~np.isfinite(x), "x", x, "finite values")
    narrow = _to_odd_float32(np.clip(x, -E4M3_MAX, E4M3_MAX)).astype(ml_dtypes.float8_e4m3fn)
    return np.asarray(narrow.astype(np.float32))


def ue8m0_exponent(amax: Float[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
    """Return the smallest e with amax ≤ 448 · 2^e, amax counting as at least 1e-4; see lab 2."""
    _refuse(~np.isfinite(amax) | (amax < 0), "amax", amax, "finite values of at least 0")
    amax = np.maximum(amax, UE8M0_AMAX_FLOOR)
    exponents = np.full(amax.shape, -22, np.int32)  # of the floor; 448 · 2^e is exact in every float type
    for e in range(-22, UE8M0_EXPONENT_MAX + 1):
        exponents += amax > np.ldexp(E4M3_MAX, e)
    _refuse(exponents > UE8M0_EXPONENT_MAX, "amax", amax, "values up to 448 · 2^127")
    return exponents


def quantise_e2m1(x: Float[np.ndarray, "... n"], scale_rule: ScaleRule = ScaleRule.GROUP) -> QuantisedE2M1:
    """Return E2M1 codes with one E4M3 scale per group of 16 along the last axis; see lab 2."""
    x = _finite_float32(x)
    if x.ndim == 0 or x.shape[-1] % GROUP_LENGTH:
        raise ValueError(f"x: expected a last axis that is a multiple of {GROUP_LENGTH}, got shape {x.shape}")
    groups = x.reshape(*x.shape[:-1], x.shape[-1] // GROUP_LENGTH, GROUP_LENGTH)
    amax = np.abs(groups).max(axis=-1)
    t = np.float32(1)
    if ScaleRule(scale_rule) is ScaleRule.TENSOR_AND_GROUP:
        t = max(amax.max(initial=0) / np.float32(TWO_LEVEL_RANGE), FLOAT32_TINY)
    scales = round_to_e4m3(np.clip(amax / np.float32(E2M1_MAX) / t, E4M3_MIN_SUBNORMAL, E4M3_MAX))
    codes = encode_e2m1(groups / np.maximum(scales * t, FLOAT32_TINY)[..., None])
    return QuantisedE2M1(codes.reshape(x.shape), scales, float(t))


def quantise_int(
    x: Float[np.ndarray, "*shape"], bits: int, group: int, axis: int = -1, symmetric: bool = True
) -> QuantisedInt:
    """Return 8, 6, 4, 3 or 2 bit codes with one float32 scale per group along an axis; see lab 2."""
    if bits not in INTEGER_BITS:
        raise ValueError(f"bits: expected one of {INTEGER_BITS}, got {bits}")
    x = _finite_float32(x)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis: expected an axis of an array of shape {x.shape}, got {axis}")
    if group < 1 or x.shape[axis] % group:
        length = f"{x.shape[axis]}, the length of axis {axis % x.ndim}"
        raise ValueError(f"group: expected a divisor of {length}, got {group}")
    moved = np.moveaxis(x.astype(np.float64), axis, -1)
    groups = moved.reshape(*moved.shape[:-1], x.shape[axis] // group, group)
    low = np.zeros(groups.shape[:-1]) if symmetric else groups.min(axis=-1)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    span = np.abs(groups).max(axis=-1) if symmetric else groups.max(axis=-1) - low
    scales = np.maximum((span / levels).astype(np.float32), FLOAT32_TINY)
    codes = np.clip(np.round((groups - low[..., None]) / scales[..., None]), -levels, levels)
    back = [np.moveaxis(part, -1, axis) for part in (codes.reshape(moved.shape), scales, low)]
    return QuantisedInt(back[0].astype(np.int16), back[1], back[2].astype(np.float32), group, axis)


def dequantise(quantised: QuantisedE2M1 | QuantisedInt) -> Float32[np.ndarray, "..."]:
    """Return the float32 array that a quantised array stands for; see lab 2."""
    if isinstance(quantised, QuantisedE2M1):
        codes, scales, tensor_scale = quantised
        _refuse_other_shape((*scales.shape[:-1], scales.shape[-1] * GROUP_LENGTH), codes.shape)
        steps = np.repeat(scales * np.float32(tensor_scale), GROUP_LENGTH, axis=-1)
        return np.asarray(decode_e2m1(codes) * steps)
    codes, scales, minimums, group, axis = quantised
    _refuse_other_shape(np.repeat(scales, group, axis).shape, codes.shape)
    wide = np.repeat(minimums, group, axis) + codes * np.repeat(scales.astype(np.float64), group, axis)
    return np.asarray(np.clip(wide, -FLOAT32_MAX, FLOAT32_MAX), np.float32)


def _to_odd_float32(x: Array) -> Float32[np.ndarray, "..."]:
    """Return float32 values that round to a narrower format as the float64 ones would, which ml_dtypes does not do.

    What float32 cannot hold exactly is moved to the neighbour with an odd last bit, which is no tie.
    """
    if x.dtype == np.float32:
        return x
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.asarray(x, np.float32)
    inexact = narrow.astype(np.float64) != x
    is_even = narrow.view(np.uint32) % 2 == 0
    neighbour = np.nextafter(narrow, np.where(x > narrow, np.float32(np.inf), np.float32(-np.inf)))
    return np.where(inexact & is_even, neighbour, narrow)


def _finite_float32(x: Array) -> Float32[np.ndarray, "..."]:
    with np.errstate(over="ignore"):
        x = np.asarray(x, np.float32)
    _refuse(~np.isfinite(x), "x", x, "finite float32 values")
    return x


def _refuse(bad: Array | np.bool_, name: str, x: Array, rule: str) -> None:
    if np.any(bad):
        index = tuple(np.argwhere(bad)[0].tolist())
        raise ValueError(f"{name}: expected {rule}, got {x[index]} at index {index}")


def _refuse_other_than_codes(codes: Array) -> None:
    if codes.dtype != np.uint8:
        raise TypeError(f"codes: expected uint8, got {codes.dtype}; call .astype(np.uint8) if they are whole")
    _refuse(codes > 15, "codes", codes, "codes from 0 to 15")


def _refuse_other_shape(covered: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if covered != shape:
        raise ValueError(f"scales: expected one per group of codes of shape {shape}, got scales for {covered}")
