"""Every way of the course to store the keys or values of one head, made of the student's own functions.

    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    for name, cached in candidates(keys, parts).items():
        cached.decoded, cached.bits_per_element, what_it_reads(name)

Bits count everything that is stored, metadata included, shared among all elements: scales, minimums, centres and the
mask of split channels, and in FP16 the tokens of a block that is not complete. The Hadamard matrix costs nothing: it
is the same for every tensor.
"""

import enum
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from jaxtyping import Float32

from labkit.formats import GROUP_LENGTH, INTEGER_BITS, Cached, Granularity, QuantisedE2M1, ScaleRule
from labkit.given.lab02 import dequantise, quantise_e2m1, quantise_int
from labkit.schemes import FLOAT16_MAX, SCHEMES

Array = Float32[np.ndarray, "T D"]
Function = Callable[[Array], Array]

E2M1_BITS: Final = 4 + 8 / GROUP_LENGTH
"""E2M1 codes and one E4M3 scale per 16."""

INTEGER_BLOCK: Final = 32
"""Tokens of a channel that share an FP16 scale and an FP16 minimum: as many bits more per element as 32 / 32.

Source: KIVI (Liu et al. 2024), whose keys have such groups of 32 tokens and keep the latest tokens in FP16."""

N_CALIBRATION: Final = 32
"""Tokens whose mean is the centre of those that follow."""

THRESHOLD: Final = 3.0
"""A channel is split off when it reaches further than this many times the median channel."""

SPLIT_BITS: Final = (8, 4, 3)


class Parts(NamedTuple):
    """The functions of the student that the candidates are made of."""

    quantise_with_granularity: Callable[..., Cached]
    split_outliers: Callable[..., Cached]
    rotate_hadamard: Callable[[np.ndarray], np.ndarray]
    centre_keys: Callable[..., tuple[np.ndarray, np.ndarray]]
    scale_four_over_six: Callable[[np.ndarray], QuantisedE2M1]


class Reads(enum.Enum):
    """What must be known before a token can be stored as the candidate stores it."""

    TOKEN = "the token"
    EARLIER = "earlier tokens"
    BLOCK = "its block of tokens"
    ALL = "all tokens"


def candidates(x: Array, parts: Parts) -> dict[str, Cached]:
    """Return what each candidate gives back for x and what it stores, by name.

    x is read as float32. D must be a power of two, 32 at least; values beyond ±65504 saturate where FP16 stores them.
    """
    x = np.asarray(x, np.float32)
    parts = Parts(*[_on_a_copy(part) for part in parts])
    return {**dict(_formats(x)), **dict(_integers(x, parts)), **dict(_remedies(x, parts))}


def _on_a_copy(part: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function on a copy of its array: one that writes into it spoils no other candidate."""
    return lambda x, *given: part(x.copy(), *given)


def what_it_reads(name: str) -> Reads:
    """Return what a candidate must know before it can store a token: a cache that grows can use the first two.

    >>> what_it_reads("INT4, one scale per channel"), what_it_reads("E2M1, rotated")
    (<Reads.ALL: 'all tokens'>, <Reads.TOKEN: 'the token'>)
    """
    return _READS.get(name, Reads.TOKEN)


def _formats(x: Array) -> Iterator[tuple[str, Cached]]:
    for scheme in SCHEMES:
        if not scheme.name.startswith("INT"):
            yield scheme.name, Cached(scheme.round_trip(x), scheme.bits_per_element)
    two_levels = dequantise(quantise_e2m1(x, ScaleRule.TENSOR_AND_GROUP))
    yield _TWO_LEVELS, Cached(two_levels, E2M1_BITS + 32 / x.size)
    yield _E2M1_BLOCKS, _in_blocks(x, GROUP_LENGTH, E2M1_BITS, _e2m1_of_tokens)


def _integers(x: Array, parts: Parts) -> Iterator[tuple[str, Cached]]:
    for granularity in Granularity:
        for bits in INTEGER_BITS:
            cached = parts.quantise_with_granularity(x, bits, granularity)
            yield _per(granularity, bits), Cached(*cached)
    for bits in INTEGER_BITS:
        yield _block(bits), _in_blocks(x, INTEGER_BLOCK, bits + 32 / INTEGER_BLOCK, _affine_of_tokens(bits))
    for bits in SPLIT_BITS:
        yield _split(bits), Cached(*parts.split_outliers(x, bits, THRESHOLD))


def _remedies(x: Array, parts: Parts) -> Iterator[tuple[str, Cached]]:
    rotated = parts.rotate_hadamard(dequantise(quantise_e2m1(parts.rotate_hadamard(x))))
    yield "E2M1, rotated", Cached(np.asarray(rotated, np.float32), E2M1_BITS)
    yield "E2M1, four over six", Cached(dequantise(QuantisedE2M1(*parts.scale_four_over_six(x))), E2M1_BITS)
    centred, centre = parts.centre_keys(x, min(N_CALIBRATION, len(x)))
    decoded = dequantise(quantise_e2m1(centred))
    decoded[N_CALIBRATION:] += centre
    yield _CENTRED, Cached(decoded, E2M1_BITS + 32 * centre.size / x.size)
    both = dequantise(QuantisedE2M1(*parts.scale_four_over_six(centred)))
    both[N_CALIBRATION:] += centre
    yield _CENTRED_FOUR_OVER_SIX, Cached(both, E2M1_BITS + 32 * centre.size / x.size)


def _in_blocks(x: Array, length: int, bits: float, round_trip: Function) -> Cached:
    """Return x after a round trip of its complete blocks of tokens; the tokens that are left stay in FP16."""
    n_complete = len(x) // length * length
    decoded = _fp16(x)
    decoded[:n_complete] = round_trip(x[:n_complete])
    return Cached(decoded, (bits * n_complete + 16 * (len(x) - n_complete)) / len(x))


def _e2m1_of_tokens(x: Array) -> Array:
    return dequantise(quantise_e2m1(x.T)).T


def _affine_of_tokens(bits: int) -> Function:
    def round_trip(x: Array) -> Array:
        quantised = quantise_int(x, bits, INTEGER_BLOCK, axis=0, symmetric=False)
        narrow = quantised._replace(scales=_fp16(quantised.scales), minimums=_fp16(quantised.minimums))
        return dequantise(narrow)

    return round_trip


def _fp16(x: Array) -> Array:
    saturated = np.clip(x, -FLOAT16_MAX, FLOAT16_MAX)
    return np.asarray(saturated.astype(np.float16), np.float32)


def _per(granularity: Granularity, bits: int) -> str:
    return f"INT{bits}, one scale per {granularity.name.lower()}"


def _block(bits: int) -> str:
    return f"INT{bits} per channel, affine blocks of {INTEGER_BLOCK}"


def _split(bits: int) -> str:
    return f"INT{bits} per token, outliers in FP16"


_TWO_LEVELS: Final = "E2M1, E4M3 per 16, float32 per tensor"
_E2M1_BLOCKS: Final = f"E2M1 per channel, blocks of {GROUP_LENGTH}"
_CENTRED: Final = "E2M1, centred"
_CENTRED_FOUR_OVER_SIX: Final = "E2M1, centred, four over six"
_READS: Final = {
    **dict.fromkeys([_CENTRED, _CENTRED_FOUR_OVER_SIX], Reads.EARLIER),
    **dict.fromkeys([_E2M1_BLOCKS, *map(_block, INTEGER_BITS)], Reads.BLOCK),
    **dict.fromkeys([_TWO_LEVELS, *map(_split, SPLIT_BITS)], Reads.ALL),
    **{_per(g, bits): Reads.ALL for g in (Granularity.TENSOR, Granularity.CHANNEL) for bits in INTEGER_BITS},
}
