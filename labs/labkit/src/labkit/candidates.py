"""Every way of the course to store the keys or values of one head, made of the student's own functions.

    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    for name, cached in candidates(keys, parts).items():
        cached.decoded, cached.bits_per_element

Bits count everything that is stored, metadata included, shared among all elements.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float32

from labkit.formats import GROUP_LENGTH, INTEGER_BITS, Cached, Granularity, QuantisedE2M1
from labkit.given.lab02 import dequantise, quantise_e2m1
from labkit.schemes import SCHEMES

Array = Float32[np.ndarray, "T D"]

E2M1_BITS: Final = 4 + 8 / GROUP_LENGTH
"""E2M1 codes and one E4M3 scale per 16."""

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


def candidates(x: Array, parts: Parts) -> dict[str, Cached]:
    """Return what each candidate gives back for x and what it stores, by name."""
    return {**dict(_formats(x)), **dict(_integers(x, parts)), **dict(_remedies(x, parts))}


def _formats(x: Array) -> Iterator[tuple[str, Cached]]:
    for scheme in SCHEMES:
        if not scheme.name.startswith("INT"):
            yield scheme.name, Cached(scheme.round_trip(x), scheme.bits_per_element)


def _integers(x: Array, parts: Parts) -> Iterator[tuple[str, Cached]]:
    for granularity in Granularity:
        for bits in INTEGER_BITS:
            name = f"INT{bits}, one scale per {granularity.name.lower()}"
            yield name, Cached(*parts.quantise_with_granularity(x, bits, granularity))
    for bits in SPLIT_BITS:
        yield f"INT{bits} per token, outliers in FP16", Cached(*parts.split_outliers(x, bits, THRESHOLD))


def _remedies(x: Array, parts: Parts) -> Iterator[tuple[str, Cached]]:
    rotated = parts.rotate_hadamard(dequantise(quantise_e2m1(parts.rotate_hadamard(x))))
    yield "E2M1, rotated", Cached(np.asarray(rotated, np.float32), E2M1_BITS)
    yield "E2M1, four over six", Cached(dequantise(QuantisedE2M1(*parts.scale_four_over_six(x))), E2M1_BITS)
    centred, centre = parts.centre_keys(x, min(N_CALIBRATION, len(x)))
    decoded = dequantise(quantise_e2m1(centred))
    decoded[N_CALIBRATION:] += centre
    yield "E2M1, centred", Cached(decoded, E2M1_BITS + 32 * centre.size / x.size)
    both = dequantise(QuantisedE2M1(*parts.scale_four_over_six(centred)))
    both[N_CALIBRATION:] += centre
    yield "E2M1, centred, four over six", Cached(both, E2M1_BITS + 32 * centre.size / x.size)
