"""Ways to store a cache, from FP16 down to two bits, each as one function from an array to what comes back.

    for scheme in SCHEMES:
        decoded = scheme.round_trip(keys)          float32, the shape of keys
        scheme.name, scheme.bits_per_element       "E2M1, E4M3 per 16", 4.5

Groups run along the last axis, whose length must be a multiple of 32. The functions are those of lab 2. What is too
large for a format saturates, in FP16 at 65504.
"""

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float32

from labkit.block_formats import round_trip_fp8, round_trip_mxfp4
from labkit.formats import GROUP_LENGTH, INTEGER_BITS, UE8M0_GROUP_LENGTH
from labkit.given.lab02 import (
    decode_e2m1,
    dequantise,
    encode_e2m1,
    quantise_e2m1,
    quantise_int,
    round_to_e4m3,
    ue8m0_exponent,
)

Array = Float32[np.ndarray, "... n"]

ROWS_AT_ONCE: Final = 2048
"""A megabyte of rows of 128."""

FLOAT16_MAX: Final = np.float32(np.finfo(np.float16).max)
"""The largest finite FP16 number, 65504."""

INTEGER_GROUP_LENGTH: Final = 32
"""Elements under one float32 scale of the integers here: bits + 32/32 per element."""


class Placement(enum.Enum):
    """Which half of a cache is quantised."""

    KEYS = "keys only"
    VALUES = "values only"
    BOTH = "keys and values"


@dataclass(frozen=True)
class Scheme:
    """One way to store an array: what it is called and drawn with, what it costs, and what comes back."""

    name: str
    colour: str
    bits_per_element: float
    round_trip: Callable[[Array], Array]


class SweepRow(NamedTuple):
    """One measurement of a sweep: the relative error of the attention output under one scheme and placement."""

    scheme: str
    placement: Placement
    bits_per_element: float
    error: float


def _fp16(x: Array) -> Array:
    return np.asarray(np.clip(x, -FLOAT16_MAX, FLOAT16_MAX).astype(np.float16), np.float32)


def _integers(bits: int, x: Array) -> Array:
    return dequantise(quantise_int(x, bits, group=INTEGER_GROUP_LENGTH))


def _e2m1(x: Array) -> Array:
    return dequantise(quantise_e2m1(x))


def _mxfp4(x: Array) -> Array:
    return round_trip_mxfp4(x, encode_e2m1, decode_e2m1)


def _fp8(x: Array) -> Array:
    return round_trip_fp8(x, round_to_e4m3, ue8m0_exponent)


def _by_rows(round_trip: Callable[[Array], Array], x: Array) -> Array:
    """Return what comes back of all rows, computed for a few at a time, which stay in the processor's cache."""
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    decoded = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        decoded[some] = round_trip(rows[some])
    return decoded.reshape(x.shape)


SCHEMES: Final = (
    Scheme("FP16", "exact", 16.0, partial(_by_rows, _fp16)),
    Scheme("FP8, UE8M0 per 32", "e4m3", 8 + 8 / UE8M0_GROUP_LENGTH, partial(_by_rows, _fp8)),
    *(
        Scheme(f"INT{bits}", "integer", bits + 32 / INTEGER_GROUP_LENGTH, partial(_by_rows, partial(_integers, bits)))
        for bits in INTEGER_BITS
    ),
    Scheme("E2M1, E4M3 per 16", "e2m1", 4 + 8 / GROUP_LENGTH, partial(_by_rows, _e2m1)),
    Scheme("MXFP4", "mxfp4", 4 + 8 / UE8M0_GROUP_LENGTH, partial(_by_rows, _mxfp4)),
)
"""The baseline and the course's formats: INT8 to INT2 are symmetric, with one float32 scale per 32 elements."""
