"""The kernels of `lab05_kernel`: their texts, and in NumPy what each of them computes.

`QUANTISE_PACK`, `DEQUANTISE` and `DECODE_ATTENTION` are CUDA C; beside them stand the functions of the same layout:
`quantise_pack`, `dequantise_packed`, `decode_attention`. Here a scale is a byte, as in memory.

Letters: `q k v` query, key, value; `T` tokens that the cache has room for, `D` head width, `B` sequences of a batch.
"""

import numpy as np
from jaxtyping import Float32, Float64, Int, UInt8
from labkit.formats import E4M3_MANTISSA_BITS, E4M3_MAX, E4M3_MIN_SUBNORMAL, GROUP_LENGTH, QuantisedE2M1

from fp4kv.arrays import dequantise, quantise_e2m1
from fp4kv.attention import attend
from fp4kv.codes import pack_nibbles, unpack_nibbles
from fp4kv.cuda_attention import DECODE_ATTENTION
from fp4kv.cuda_quantise import DEQUANTISE, QUANTISE_PACK

__all__ = [
    "DECODE_ATTENTION",
    "DEQUANTISE",
    "QUANTISE_PACK",
    "decode_attention",
    "dequantise_packed",
    "quantise_pack",
]


def _values_of_bytes() -> Float32[np.ndarray, " 127"]:
    """Return the value of each E4M3 byte from 0x00 to 0x7e."""
    exponent, mantissa = np.divmod(np.arange(127, dtype=np.int32), 2**E4M3_MANTISSA_BITS)
    significand = mantissa + np.where(exponent > 0, 2**E4M3_MANTISSA_BITS, 0)
    values = np.ldexp(significand * E4M3_MIN_SUBNORMAL, np.maximum(exponent, 1) - 1)
    return np.asarray(values, np.float32)


_E4M3_VALUES = _values_of_bytes()


def quantise_pack(
    x: Float32[np.ndarray, "... n"],
) -> tuple[UInt8[np.ndarray, "... n//2"], UInt8[np.ndarray, "... n//16"]]:
    """Return packed E2M1 codes and one E4M3 byte per group of 16 along the last axis.

    Lab 2's `quantise_e2m1` with one scale per group, in the form in which a cache stores it: byte j of `packed` holds
    element 2j in its low half and element 2j + 1 in its high half.

    Raises
    ------
    ValueError
        If a value is NaN or infinite (the message names the index of the first), or the last axis is missing or not a
        multiple of 16.

    Example
    -------
    >>> packed, scales = quantise_pack(np.arange(-6, 10, dtype=np.float32))
    >>> [hex(byte) for byte in packed[:2]], [hex(byte) for byte in scales]
    (['0xde', '0xcd'], ['0x3c'])
    """
    quantised = quantise_e2m1(x)
    scale_bytes = np.searchsorted(_E4M3_VALUES, quantised.scales).astype(np.uint8)
    return pack_nibbles(quantised.codes), scale_bytes


def dequantise_packed(
    packed: UInt8[np.ndarray, "... m"], scales: UInt8[np.ndarray, "... m//8"]
) -> Float32[np.ndarray, "... 2*m"]:
    """Return the float32 array that packed codes and the bytes of their scales stand for.

    Every product of an E2M1 and an E4M3 number is exact in float32.

    Raises
    ------
    ValueError
        If a scale is none: byte 0x7f is NaN, and from 0x80 on there is a sign (the message names the index of the
        first); or the scales are not one for each 8 bytes.

    Example
    -------
    >>> packed, scales = quantise_pack(np.arange(-6, 10, dtype=np.float32))
    >>> dequantise_packed(packed, scales)[:4]
    array([-6. , -4.5, -4.5, -3. ], dtype=float32)
    """
    if np.any(is_none := scales >= len(_E4M3_VALUES)):
        index = tuple(np.argwhere(is_none)[0].tolist())
        raise ValueError(f"scales: expected bytes up to 0x7e ({E4M3_MAX:.0f}), got {scales[index]:#04x} at {index}")
    return dequantise(QuantisedE2M1(unpack_nibbles(packed), _E4M3_VALUES[scales], 1.0))


def decode_attention(
    q: Float32[np.ndarray, "B heads D"],
    k_packed: UInt8[np.ndarray, "B kv_heads T D//2"],
    k_scales: UInt8[np.ndarray, "B kv_heads T D//16"],
    v_packed: UInt8[np.ndarray, "B kv_heads T D//2"],
    v_scales: UInt8[np.ndarray, "B kv_heads T D//16"],
    lengths: Int[np.ndarray, " B"],
) -> Float64[np.ndarray, "B heads D"]:
    """Return attention of one query per head over a packed cache, computed in float64.

    Query heads share KV heads in groups: with `heads // kv_heads` in a group, query head h reads KV head
    h // group. Sequence b attends to its first `lengths[b]` tokens; what the cache holds beyond them counts for
    nothing. A sequence of no tokens has the output 0.

    Raises
    ------
    ValueError
        If `heads` is not a multiple of `kv_heads`, D not one of 16, a length is not from 0 to T (the message names the
        first such sequence), or a scale within the lengths is none.

    Example
    -------
    >>> keys, values = np.zeros((2, 1, 1, 3, 16), np.float32)
    >>> values[..., 0] = [6, 12, 24]
    >>> query = np.ones((1, 1, 16), np.float32)
    >>> decode_attention(query, *quantise_pack(keys), *quantise_pack(values), np.array([2]))[0, 0, :2]
    array([9., 0.])
    """
    _refuse_heads_and_lengths(q, k_packed, lengths)
    kv_heads = k_packed.shape[1]
    groups = q.reshape(len(q), kv_heads, q.shape[1] // kv_heads, q.shape[-1])

    output = np.zeros(groups.shape)
    for sequence, length in enumerate(lengths):
        if length > 0:
            counted = sequence, slice(None), slice(length)
            keys = dequantise_packed(k_packed[counted], k_scales[counted])
            values = dequantise_packed(v_packed[counted], v_scales[counted])
            output[sequence] = attend(groups[sequence], keys, values)
    return output.reshape(q.shape)


def _refuse_heads_and_lengths(q: np.ndarray, k_packed: np.ndarray, lengths: np.ndarray) -> None:
    (heads, width), (kv_heads, tokens) = q.shape[1:], k_packed.shape[1:3]
    if heads % kv_heads:
        raise ValueError(f"q: expected a multiple of {kv_heads} query heads, one group per KV head, got {heads}")
    if width % GROUP_LENGTH:
        raise ValueError(f"q: expected a width that is a multiple of {GROUP_LENGTH}, got {width}")
    wrong = np.flatnonzero((lengths < 0) | (lengths > tokens))
    if wrong.size:
        raise ValueError(f"lengths: expected 0 to {tokens}, got {lengths[wrong[0]]} for sequence {wrong[0]}")
