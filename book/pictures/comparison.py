"""Guarantee, estimate and measured error of attention outputs, side by side: what the tables of chapter 3 hold."""

from collections.abc import Sequence
from typing import NamedTuple

import fp4kv
import numpy as np
from fp4kv import attend, dequantise, quantise_e2m1

HEAD = ["measured", "estimate", "guarantee", "estimate / measured", "guarantee / measured"]


class Comparison(NamedTuple):
    """Error norms of several queries: what it is, what was estimated, what was guaranteed."""

    measured: np.ndarray
    estimate: np.ndarray
    guarantee: np.ndarray


def compare(q: np.ndarray, keys: np.ndarray, values: np.ndarray) -> Comparison:
    """Return the three for a cache in E2M1 with one E4M3 scale per 16."""
    packed = quantise_e2m1(keys), quantise_e2m1(values)
    change = attend(q, *map(dequantise, packed)) - attend(q, keys, values)
    return Comparison(
        np.linalg.norm(change, axis=-1),
        fp4kv.predict_output_error(q, *packed),
        fp4kv.output_error_bound(q, *packed),
    )


def pooled(comparisons: Sequence[Comparison]) -> Comparison:
    """Return the comparisons of several caches as one."""
    return Comparison(*(np.concatenate(part) for part in zip(*comparisons, strict=True)))


def rms(errors: np.ndarray) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


def estimate_ratio(comparison: Comparison) -> float:
    """Return how the estimate stands to the measured error, both as root mean squares."""
    return rms(comparison.estimate) / rms(comparison.measured)


def guarantee_ratio(comparison: Comparison) -> float:
    """Return how the guarantee stands to the measured error, both as root mean squares."""
    return rms(comparison.guarantee) / rms(comparison.measured)


def gaussian_cache(
    n_tokens: int, width: int, n_queries: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return queries, keys and values of independent Gaussian elements, variance 1: logits have variance 1 too."""
    shapes = (n_queries, width), (n_tokens, width), (n_tokens, width)
    q, keys, values = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    return q, keys, values


def as_cells(comparison: Comparison) -> list[str]:
    """Return the five cells of a table that belong under `HEAD`."""
    sizes = [f"{rms(part):#.3g}" for part in comparison]
    return [*sizes, f"{estimate_ratio(comparison):.2f}", f"{guarantee_ratio(comparison):.0f}"]
