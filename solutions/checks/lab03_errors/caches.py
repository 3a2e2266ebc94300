"""Queries and caches at which the terms of the bound on an output can be told apart."""

from typing import Any

import fp4kv
import numpy as np
from labkit.formats import QuantisedE2M1

from .inputs import peaks

TOLD_APART = (0.1, 0.5, 1.0)
"""ε of the tightness cases: tanh(ε/2) is at most ½ up to ln 3 = 1.099."""


def sink(cases: Any, n_tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a query, and keys that give more than half of the weight to token 0, though little is known of them."""
    at = peaks(cases, 32)
    keys = np.zeros((n_tokens, 32), np.float32)
    keys[0], keys[0, at] = 1.5, 6
    q = np.full(32, 0.08 * np.log(n_tokens) * np.sqrt(32), np.float32)  # logit 30 · 1.5 · 0.08 · ln(9) = 7.9
    q[at] = 0
    return q[None] / np.float32(2), keys


def one_large(cases: Any, scales: np.ndarray) -> np.ndarray:
    """Return scales of which those of one token are larger: its radius counts once, with another token's."""
    larger = scales.copy()
    larger[int(cases.rng.integers(len(scales)))] *= 16
    return larger


def scaled_queries(cases: Any, keys: QuantisedE2M1, at: np.ndarray) -> np.ndarray:
    """Return one query for each ε in `TOLD_APART`."""
    q = cases.rng.normal(size=(len(TOLD_APART), 32))
    q[:, at] = 0
    bounds = np.sort(fp4kv.logit_error_bound(q, keys), axis=-1)[:, -2:].mean(axis=-1)
    return np.float32(q * (np.array(TOLD_APART) / bounds)[:, None])
