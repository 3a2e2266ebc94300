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
from labkit.given.refusals import finite_float32, require, require_all, require_codes

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
    require_all(np.isfinite(x), "x", "finite values", x)
    codes: Array = _to_odd_float32(x).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return codes


def decode_e2m1(codes: UInt8[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """Return the value of each 4-bit E2M1 code; see lab 2."""
    require_codes(codes)
    return np.asarray(codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32))


def pack_nibbles(codes: UInt8[np.ndarray, "... n"]) -> UInt8[np.ndarray, "... n//2"]:
    """Return two codes per byte, the first in the low half; see lab 2."""
    require_codes(codes)
    is_even = codes.ndim > 0 and codes.shape[-1] % 2 == 0
    require(is_even, "codes", "a last axis of even length", f"shape {codes.shape}")
    bits = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., :4]
    return np.packbits(bits.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def unpack_nibbles(packed: UInt8[np.ndarray, "... m"]) -> UInt8[np.ndarray, "... 2*m"]:
    """Return the two codes of each byte, the low half first; see lab 2."""
    require(packed.dtype == np.uint8, "packed", "uint8", packed.dtype, TypeError)
    require(packed.ndim > 0, "packed", "at least one axis", "shape ()")
    halves = np.stack([packed % 16, packed // 16], axis=-1)
    return halves.reshape(*packed.shape[:-1], 2 * packed.shape[-1])


def round_to_e4m3(x: Float[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """Return the E4M3 value nearest to each value, ties to even, saturating at ±448; see lab 2."""
    require_all(np.isfinite(x), "x", "finite values", x)
    narrow = _to_odd_float32(np.clip(x, -E4M3_MAX, E4M3_MAX)).astype(ml_dtypes.float8_e4m3fn)
    return np.asarray(narrow.astype(np.float32))


def ue8m0_exponent(amax: Float[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
    """Return the smallest e with amax ≤ 448 · 2^e, amax counting as at least 1e-4; see lab 2."""
    require_all(np.isfinite(amax) & (amax >= 0), "amax", "finite values of at least 0", amax)
    amax = np.maximum(amax, UE8M0_AMAX_FLOOR)
    exponents = np.full(amax.shape, -22, np.int32)  # of the floor; 448 · 2^e is exact in every float type
    for e in range(-22, UE8M0_EXPONENT_MAX + 1):
        exponents += amax > np.ldexp(E4M3_MAX, e)
    require_all(exponents <= UE8M0_EXPONENT_MAX, "amax", "values up to 448 · 2^127", amax)
    return exponents


def quantise_e2m1(x: Float[np.ndarray, "... n"], scale_rule: ScaleRule = ScaleRule.GROUP) -> QuantisedE2M1:
    """Return E2M1 codes with one E4M3 scale per group of 16 along the last axis; see lab 2."""
    x = finite_float32(x)
    n_groups, rest = divmod(x.shape[-1], GROUP_LENGTH) if x.ndim else (0, 1)
    require(not rest, "x", f"a last axis that is a multiple of {GROUP_LENGTH}", f"shape {x.shape}")
    groups = np.reshape(x, (*x.shape[:-1], n_groups, GROUP_LENGTH))
    reach = np.max(np.abs(groups), axis=-1)
    tensor_scale = np.float32(1)
    if ScaleRule(scale_rule) is ScaleRule.TENSOR_AND_GROUP:
        tensor_scale = max(np.max(reach, initial=0) / np.float32(TWO_LEVEL_RANGE), FLOAT32_TINY)
    wanted = reach / np.float32(E2M1_MAX) / tensor_scale
    scales = round_to_e4m3(wanted.clip(E4M3_MIN_SUBNORMAL, E4M3_MAX))
    steps = np.fmax(scales * tensor_scale, FLOAT32_TINY)
    codes = encode_e2m1(groups / steps[..., np.newaxis])
    return QuantisedE2M1(np.reshape(codes, x.shape), scales, float(tensor_scale))


def quantise_int(
    x: Float[np.ndarray, "*shape"], bits: int, group: int, axis: int = -1, symmetric: bool = True
) -> QuantisedInt:
    """Return 8, 6, 4, 3 or 2 bit codes with one float32 scale per group along an axis; see lab 2."""
    require(bits in INTEGER_BITS, "bits", f"one of {INTEGER_BITS}", bits)
    x = finite_float32(x)
    require(-x.ndim <= axis < x.ndim, "axis", f"an axis of an array of shape {x.shape}", axis)
    length = x.shape[axis]
    divides = group >= 1 and length % group == 0
    require(divides, "group", f"a divisor of {length}, the length of axis {axis % x.ndim}", group)

    moved = np.moveaxis(x.astype(np.float64), axis, -1)
    groups = moved.reshape(*moved.shape[:-1], length // group, group)
    low = np.zeros(groups.shape[:-1]) if symmetric else groups.min(axis=-1)
    levels = 2 ** (bits - 1) - 1 if symmetric else 2**bits - 1
    reach = np.abs(groups).max(axis=-1) if symmetric else groups.max(axis=-1) - low
    scales = np.fmax((reach / levels).astype(np.float32), FLOAT32_TINY)
    codes = np.round((groups - low[..., None]) / scales[..., None]).clip(-levels, levels)
    codes, scales, low = (np.moveaxis(part, -1, axis) for part in (codes.reshape(moved.shape), scales, low))
    return QuantisedInt(codes.astype(np.int16), scales, low.astype(np.float32), group, axis)


def dequantise(quantised: QuantisedE2M1 | QuantisedInt) -> Float32[np.ndarray, "..."]:
    """Return the float32 array that a quantised array stands for; see lab 2."""
    group, axis = (quantised.group, quantised.axis) if isinstance(quantised, QuantisedInt) else (GROUP_LENGTH, -1)
    scales = np.repeat(quantised.scales, group, axis)
    shape = quantised.codes.shape
    require(scales.shape == shape, "scales", f"one per group of codes of shape {shape}", f"scales for {scales.shape}")
    if isinstance(quantised, QuantisedE2M1):
        return np.asarray(decode_e2m1(quantised.codes) * (scales * np.float32(quantised.tensor_scale)))
    values = np.repeat(quantised.minimums, group, axis) + np.float64(scales) * quantised.codes
    return values.clip(-FLOAT32_MAX, FLOAT32_MAX).astype(np.float32)


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
