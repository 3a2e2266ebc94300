"""Facts of the number formats, each once, each with its source. Also the records of quantised arrays.

Letters: `G` group length, `s` scale, `c` code (0 to 15), `t` tensor scale, `e` exponent.
Bits are counted from the lowest, bit 0. Codes in text have their fields separated: `0b0_11_1` is +6.

Sources: OCP Microscaling Formats (MX) v1.0 for E2M1, E4M3, E8M0 and groups of 32; NVIDIA, "Introducing
NVFP4", for groups of 16 under E4M3 with a tensor scale; the ml_dtypes README for the limits of each format.
"""

import enum
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float32, Int16, UInt8


def _constant(*values: float) -> Float32[np.ndarray, " n"]:
    """Return a float32 array that nobody can write to."""
    array = np.array(values, np.float32)
    array.flags.writeable = False
    return array


# E2M1: 1 sign, 2 exponent, 1 mantissa bit, bias 1; no infinity, no NaN. Codes 8 to 15 are codes 0 to 7, negative.
E2M1_VALUES: Final = _constant(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The magnitudes of codes 0 to 7."""

E2M1_TIES: Final = _constant(0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
"""`E2M1_TIES[c]` lies halfway between the values of codes c and c + 1: the even code of the two gets it."""

E2M1_MAX: Final = 6.0
"""The largest value: code 7, `0b0_11_1`."""

E2M1_MEAN_SQUARE_ERRORS: Final = _constant(0.0208, 0.0208, 0.0208, 0.0208, 0.0593, 0.0834, 0.2093, 0.1800)
"""What (x - x̂)² averages for codes 0 to 7, in units of s², when groups of 16 Gaussian values have their own scale.

Integrated over the distribution of a group's largest magnitude, for values of variance 1; a test integrates again, and
measures. Code 7 has 0.1794 to 0.1806 under other variances, where scales round otherwise. A value spread evenly over
its cell would have 1/48 for the first four and 1/16, 1/12, 1/4 after them: Gaussian values are more frequent at the
near end of the cells of codes 4 and 6, which reach further out than in."""

# E4M3 (ml_dtypes: float8_e4m3fn): 1 sign, 4 exponent, 3 mantissa bits, bias 7; no infinity, one NaN per sign.
E4M3_MAX: Final = 448.0
"""The largest value, 1.75 · 2^8. An ordinary cast makes NaN of anything above 464; we saturate."""

E4M3_MIN_NORMAL: Final = 2.0**-6
"""The smallest value with all four significant bits."""

E4M3_MIN_SUBNORMAL: Final = 2.0**-9
"""The smallest positive value, and the step between the values below `E4M3_MIN_NORMAL`."""

E4M3_MANTISSA_BITS: Final = 3
"""Stored bits after the leading one: between two powers of two there are 2^3 steps."""

# E8M0, here always an unsigned power of two (UE8M0): 2^e as the byte e + 127; byte 255 is NaN; no zero.
UE8M0_EXPONENT_MAX: Final = 127
"""The largest exponent; the smallest is -127."""

UE8M0_AMAX_FLOOR: Final = 1e-4
"""A group's largest magnitude counts as at least this much before the exponent is chosen.

Source: vLLM, `fused_compress_quant_cache.py`, window cache of DeepSeek V4.1."""

# Groups: neighbours along the last axis that share one scale.
GROUP_LENGTH: Final = 16
"""Elements under one E4M3 scale: 4 + 8/16 = 4.5 bits per element."""

UE8M0_GROUP_LENGTH: Final = 32
"""Elements under one UE8M0 scale: 4 + 8/32 = 4.25 bits (MXFP4), 8 + 8/32 = 8.25 bits (FP8)."""

TWO_LEVEL_RANGE: Final = 2688.0
"""6 · 448, the largest magnitude under an E4M3 scale alone; a tensor scale maps the tensor's amax to it."""

INTEGER_BITS: Final = (8, 6, 4, 3, 2)
"""The widths of the course's integer formats."""

# Float32, in which scales are computed.
FLOAT32_TINY: Final = np.finfo(np.float32).smallest_subnormal
"""The smallest positive float32, 2^-149: a divisor is never less, so nothing is divided by zero."""

FLOAT32_MAX: Final = np.finfo(np.float32).max
"""The largest float32, about 3.4e38."""


def code_fields(code: int) -> str:
    """Return a 4-bit code as text with its fields separated: sign, exponent, mantissa.

    >>> code_fields(7)
    '0b0_11_1'
    """
    return f"0b{code >> 3}_{code >> 1 & 0b11:02b}_{code & 1}"


class ScaleRule(enum.Enum):
    """Where the scale of an E2M1 group comes from."""

    GROUP = "one E4M3 scale per group"
    TENSOR_AND_GROUP = "one float32 scale for the tensor, one E4M3 scale per group"


class Granularity(enum.Enum):
    """Which elements of a tensor of shape (tokens, channels) share one scale."""

    TENSOR = "all of them"
    TOKEN = "the channels of one token"
    CHANNEL = "the tokens of one channel"
    GROUP = "16 neighbouring channels of one token"


class QuantisedE2M1(NamedTuple):
    """An array as E2M1 codes, one E4M3 scale per 16 of them, and a tensor scale (1.0 under `GROUP`).

    Element i of group g stands for `value(codes) · (scales[g] · tensor_scale)`.
    """

    codes: UInt8[np.ndarray, "... n"]
    scales: Float32[np.ndarray, "... n//16"]
    tensor_scale: float


class QuantisedInt(NamedTuple):
    """An array as small integers, one float32 scale and one minimum per `group` along `axis`.

    An element stands for `minimum + code · scale`; minimums are zeros where the codes are symmetric.
    `scales` and `minimums` have the array's shape with the length of `axis` divided by `group`; a negative `axis`
    counts from the end.
    """

    codes: Int16[np.ndarray, "*shape"]
    scales: Float32[np.ndarray, "*groups"]
    minimums: Float32[np.ndarray, "*groups"]
    group: int
    axis: int


class Cached(NamedTuple):
    """What a cache gives back for a tensor, and what it stores for that: all bits, metadata included."""

    decoded: Float32[np.ndarray, "T D"]
    bits_per_element: float
