"""Tasks of `lab02_formats` on single numbers: value ↔ code, codes ↔ bytes, and the two formats of a scale.

Letters: `x` value, `c` code (0 to 15), `s` scale, `e` exponent.
"""

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8
from labkit.formats import (
    E2M1_TIES,
    E2M1_VALUES,
    E4M3_MANTISSA_BITS,
    E4M3_MAX,
    E4M3_MIN_SUBNORMAL,
    UE8M0_AMAX_FLOOR,
    UE8M0_EXPONENT_MAX,
)


def encode_e2m1(x: Float[np.ndarray, "..."]) -> UInt8[np.ndarray, "..."]:
    """Return the 4-bit E2M1 code nearest to each value, ties to even.

    Bit 3 of a code is the sign, bits 2-1 the exponent, bit 0 the mantissa; -0.0 has code 8. Finite values beyond
    ±6 take the code of ±6. A value of any float type is rounded once, from what it is.

    Raises
    ------
    ValueError
        If a value is NaN or infinite, which E2M1 has no code for; the message names the index of the first.

    Example
    -------
    >>> encode_e2m1(np.array([0.5, 1.25, -7.0]))
    array([ 1,  2, 15], dtype=uint8)

    Source: OCP Microscaling Formats (MX) v1.0, FP4 element format.
    """
    _refuse(~np.isfinite(x), "x", x, "finite values")
    size = np.abs(x)

    codes = np.zeros(x.shape, np.uint8)
    for code, tie in enumerate(E2M1_TIES):
        codes += size > tie if code % 2 == 0 else size >= tie  # at the tie itself, stay with the even code
    codes += np.signbit(x) * np.uint8(8)
    return codes


def _refuse(bad: np.ndarray | np.bool_, name: str, x: np.ndarray, rule: str) -> None:
    """Raise a ValueError that names the first index at which `bad` holds, if there is one."""
    if np.any(bad):
        index = tuple(np.argwhere(bad)[0].tolist())
        raise ValueError(f"{name}: expected {rule}, got {x[index]} at index {index}")


def decode_e2m1(codes: UInt8[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """Return the value of each 4-bit E2M1 code.

    Raises
    ------
    TypeError
        If the codes are not uint8.
    ValueError
        If a code is above 15; the message names the index of the first.

    Example
    -------
    >>> decode_e2m1(np.array([1, 2, 15], np.uint8))
    array([ 0.5,  1. , -6. ], dtype=float32)

    Source: OCP Microscaling Formats (MX) v1.0, FP4 element format.
    """
    _refuse_other_than_codes(codes)
    values = np.concatenate([E2M1_VALUES, -E2M1_VALUES])
    return np.asarray(values[codes])  # an array even of a lone code


def _refuse_other_than_codes(codes: np.ndarray) -> None:
    """Raise an error unless `codes` holds 4-bit codes in bytes."""
    if codes.dtype != np.uint8:
        raise TypeError(f"codes: expected uint8, got {codes.dtype}; call .astype(np.uint8) if they are whole")
    _refuse(codes > 15, "codes", codes, "codes from 0 to 15")


def pack_nibbles(codes: UInt8[np.ndarray, "... n"]) -> UInt8[np.ndarray, "... n//2"]:
    """Return two 4-bit codes per byte, the first in the low half.

    Byte j holds element 2j in its low half and element 2j + 1 in its high half, along the last axis.

    Raises
    ------
    TypeError
        If the codes are not uint8.
    ValueError
        If a code is above 15 (the message names the index of the first), or the last axis is missing or odd.

    Example
    -------
    >>> [hex(byte) for byte in pack_nibbles(np.array([2, 7], np.uint8))]
    ['0x72']

    Source: the low half first, as in torchao's and DeepSeek's packed E2M1.
    """
    _refuse_other_than_codes(codes)
    if codes.ndim == 0 or codes.shape[-1] % 2:
        raise ValueError(f"codes: expected a last axis of even length, got shape {codes.shape}")

    packed: np.ndarray = codes[..., 0::2] | codes[..., 1::2] << 4
    return packed


def unpack_nibbles(packed: UInt8[np.ndarray, "... m"]) -> UInt8[np.ndarray, "... 2*m"]:
    """Return the two 4-bit codes of each byte, the low half first.

    The inverse of `pack_nibbles`.

    Raises
    ------
    TypeError
        If the bytes are not uint8.
    ValueError
        If there is no last axis.

    Example
    -------
    >>> unpack_nibbles(np.array([0x72], np.uint8))
    array([2, 7], dtype=uint8)
    """
    if packed.dtype != np.uint8:
        raise TypeError(f"packed: expected uint8, got {packed.dtype}")
    if packed.ndim == 0:
        raise ValueError("packed: expected at least one axis, got shape ()")

    codes = np.empty((*packed.shape[:-1], 2 * packed.shape[-1]), np.uint8)
    codes[..., 0::2] = packed & 0b1111
    codes[..., 1::2] = packed >> 4
    return codes


def round_to_e4m3(x: Float[np.ndarray, "..."]) -> Float32[np.ndarray, "..."]:
    """Return the E4M3 value nearest to each value, ties to even, saturating at ±448.

    A value of any float type is rounded once, from what it is; -0.0 stays -0.0.

    Raises
    ------
    ValueError
        If a value is NaN or infinite; the message names the index of the first.

    Example
    -------
    >>> round_to_e4m3(np.array([1.06, 17.0, 1000.0]))
    array([  1.,  16., 448.], dtype=float32)

    Source: OCP 8-bit Floating Point Specification (OFP8) v1.0, E4M3.
    """
    _refuse(~np.isfinite(x), "x", x, "finite values")
    x = np.clip(x, -E4M3_MAX, E4M3_MAX)

    _, exponent = np.frexp(x)  # |x| < 2^exponent ≤ 2|x|
    step = np.ldexp(np.float32(1), exponent - 1 - E4M3_MANTISSA_BITS)
    step = np.maximum(step, np.float32(E4M3_MIN_SUBNORMAL))  # below the smallest normal, steps stop shrinking
    return np.asarray(np.rint(x / step) * step, np.float32)


def ue8m0_exponent(amax: Float[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
    """Return the smallest e with amax ≤ 448 · 2^e, where amax counts as at least 1e-4.

    2^e is then the UE8M0 scale under which the group's largest magnitude fits E4M3. Exact at and beside powers of two.

    Raises
    ------
    ValueError
        If a value is NaN, infinite, negative, or needs an exponent above 127; the message names the index.

    Example
    -------
    >>> ue8m0_exponent(np.array([448.0, 448.01, 0.0]))
    array([  0,   1, -22], dtype=int32)

    Source: vLLM, `fused_compress_quant_cache.py`, window cache of DeepSeek V4.1.
    """
    _refuse(~np.isfinite(amax) | (amax < 0), "amax", amax, "finite values of at least 0")

    mantissa, exponent = np.frexp(np.maximum(amax, UE8M0_AMAX_FLOOR))
    limit_mantissa, limit_exponent = np.frexp(E4M3_MAX)
    exponents = np.asarray(exponent - limit_exponent + (mantissa > limit_mantissa))
    _refuse(exponents > UE8M0_EXPONENT_MAX, "amax", amax, "values up to 448 · 2^127")
    return exponents
