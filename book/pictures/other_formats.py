"""Guarantee and estimate for the formats that are no task: FP8, MXFP4 and the integers, from their own cells.

An element lies in the cell of the value that it was decoded to; a cell reaches `below` the value, towards zero, and
`above` it. The farther of the two is the radius. The mean square of an error spread evenly over the cell is its
variance.
"""

from collections.abc import Callable
from typing import NamedTuple

import fp4kv
import numpy as np
from fp4kv import attend, attention_weights
from labkit.formats import E2M1_TIES, E2M1_VALUES, UE8M0_GROUP_LENGTH
from labkit.schemes import SCHEMES, Scheme

from pictures.comparison import Comparison, compare, gaussian_cache
from pictures.looseness import diameter

MXFP4_TOP = 8.0  # the floor rule leaves amax below 8 scales, and the largest value is 6
E4M3_STEPS_PER_OCTAVE, E4M3_SMALLEST_STEP = 8, 2.0**-9


class Cells(NamedTuple):
    """How far the cell of each decoded element reaches towards zero and away from it."""

    below: np.ndarray
    above: np.ndarray


def integer_cells(x: np.ndarray, decoded: np.ndarray, bits: int) -> Cells:
    """Return half a step either way."""
    half = group_amax(x) / (2 ** (bits - 1) - 1) / 2
    return Cells(half, half)


def mxfp4_cells(x: np.ndarray, decoded: np.ndarray) -> Cells:
    """Return the distances to the ties on either side; the largest value's cell ends at 8."""
    scale = 2.0 ** (np.floor(np.log2(group_amax(x))) - 2)
    codes = np.searchsorted(E2M1_VALUES, np.abs(decoded) / scale)
    ends = np.concatenate([[-E2M1_TIES[0]], E2M1_TIES, [MXFP4_TOP]])
    return Cells((E2M1_VALUES - ends[:-1])[codes] * scale, (ends[1:] - E2M1_VALUES)[codes] * scale)


def fp8_cells(x: np.ndarray, decoded: np.ndarray) -> Cells:
    """Return half a step of E4M3 either way, and a quarter below a power of two."""
    scale = 2.0 ** fp4kv.ue8m0_exponent(group_amax(x))
    size, exponent = np.frexp(np.abs(decoded) / scale)
    step = np.maximum(np.ldexp(1.0, exponent - 1) / E4M3_STEPS_PER_OCTAVE, E4M3_SMALLEST_STEP)
    is_power = (size == 0.5) & (step > E4M3_SMALLEST_STEP)
    return Cells(np.where(is_power, step / 4, step / 2) * scale, step / 2 * scale)


def group_amax(x: np.ndarray) -> np.ndarray:
    """Return for each element the largest magnitude of its group of 32."""
    groups = np.abs(x.astype(np.float64)).reshape(*x.shape[:-1], -1, UE8M0_GROUP_LENGTH)
    return np.repeat(groups.max(axis=-1), UE8M0_GROUP_LENGTH, axis=-1)


def cells_of(scheme: Scheme) -> Callable[[np.ndarray, np.ndarray], Cells]:
    """Return the function that gives the cells of a scheme."""
    if scheme.name.startswith("INT"):
        return lambda x, decoded: integer_cells(x, decoded, int(scheme.name[3:]))
    return mxfp4_cells if scheme.name == "MXFP4" else fp8_cells


def variance(cells: Cells) -> np.ndarray:
    """Return the mean square of an error that is spread evenly over each cell."""
    below, above = cells
    return (below**3 + above**3) / (3 * np.maximum(below + above, np.finfo(np.float64).tiny))


def compare_scheme(scheme: Scheme, q: np.ndarray, keys: np.ndarray, values: np.ndarray) -> Comparison:
    """Return guarantee, estimate and measured error of one scheme."""
    decoded = [scheme.round_trip(x) for x in (keys, values)]
    key_cells, value_cells = (cells_of(scheme)(x, y) for x, y in zip((keys, values), decoded, strict=True))
    weights = attention_weights(q, decoded[0])
    output = weights @ decoded[1]

    logit_errors = np.abs(q) @ np.maximum(*key_cells).T / np.sqrt(q.shape[-1])
    radii = np.linalg.norm(np.maximum(*value_cells), axis=-1)
    guarantee = fp4kv.weight_error_bound(logit_errors) * diameter(decoded[1], radii) + weights @ radii

    logit_variance = q.astype(np.float64) ** 2 @ variance(key_cells).T / q.shape[-1]
    squared = np.square(output[:, None] - decoded[1]).sum(axis=-1)
    square = (weights**2 * (logit_variance * squared + variance(value_cells).sum(axis=-1))).sum(axis=-1)
    return Comparison(np.linalg.norm(output - attend(q, keys, values), axis=-1), np.sqrt(square), guarantee)


def compare_all(n_tokens: int = 1024, width: int = 64, n_queries: int = 16) -> list[tuple[Scheme, Comparison]]:
    """Return every scheme but the baseline, fewest bits last, on one Gaussian cache (seed 2)."""
    cache = gaussian_cache(n_tokens, width, n_queries, np.random.default_rng(2))
    schemes = sorted(SCHEMES[1:], key=lambda scheme: -scheme.bits_per_element)
    return [(s, compare(*cache) if s.name.startswith("E2M1") else compare_scheme(s, *cache)) for s in schemes]
