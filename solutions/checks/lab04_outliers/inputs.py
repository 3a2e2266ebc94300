"""What the checks of lab 4 share: inputs away from ties, and records as they come back."""

from typing import Any

import numpy as np
from labkit.expect import Mismatch, plain_array
from labkit.formats import E2M1_TIES, FLOAT32_TINY, GROUP_LENGTH, Cached, Granularity, QuantisedE2M1

FLOAT32_ULP = 2.0**-23
"""One step of float32, relative to a power of two."""

CODE_MARGIN = 1e-3
"""Least distance of a quotient of integers from a tie, in codes. Of at most 255 codes, a float32 quotient is off by
255 · 2^-23, 3e-5 codes, and once more where a minimum was subtracted before."""

E2M1_MARGIN = 1e-5
"""Least relative distance of a quotient of E2M1 from a tie: a hundred times what float32 can move it."""

DECODED_ULPS = 4
"""A decoded integer is a product and a sum, each rounded to half a step: two answers differ by less than this."""


def as_cached(got: Any) -> Cached:
    """Return what a cache gives back and stores, if the answer has the parts of that."""
    if not isinstance(got, tuple) or len(got) != 2:
        raise Mismatch("a Cached: decoded, bits_per_element", f"a {type(got).__name__}")
    return Cached(plain_array(got[0]), as_number(got[1], "bits_per_element"))


def as_number(got: Any, name: str) -> float:
    """Return one finite number as a float."""
    found = plain_array(got)
    if found.size != 1 or found.dtype.kind not in "iuf" or not np.isfinite(found).all():
        raise Mismatch(f"a number as {name}", f"shape {found.shape}, {found.dtype}" if found.size != 1 else f"{got}")
    return float(found.reshape(()))


def as_e2m1(got: Any) -> QuantisedE2M1:
    """Return a record of E2M1 codes, if the answer has the parts of one."""
    if not isinstance(got, tuple) or len(got) != 3:
        raise Mismatch("a QuantisedE2M1: codes, scales, tensor_scale", f"a {type(got).__name__}")
    return QuantisedE2M1(plain_array(got[0]), plain_array(got[1]), as_number(got[2], "tensor_scale"))


def groups_along(x: np.ndarray, granularity: Granularity) -> np.ndarray:
    """Return a view of x whose last axis runs over the elements that share a scale."""
    if granularity is Granularity.TENSOR:
        return x.reshape(1, -1)
    if granularity is Granularity.CHANNEL:
        return x.T
    return x if granularity is Granularity.TOKEN else x.reshape(len(x), -1, GROUP_LENGTH)


def clear_of_ties(x: Any, bits: int, granularity: Granularity, symmetric: bool = True) -> np.ndarray:
    """Return x as float32 with the elements whose quotients lie near a tie moved a quarter of a step away."""
    x = np.array(x, np.float32)
    groups = groups_along(x, granularity).astype(np.float64)
    low = groups.min(axis=-1, keepdims=True) * (not symmetric)
    reach = np.abs(groups - low).max(axis=-1, keepdims=True)
    step = np.maximum(reach / (2 ** (bits - 1) - 1 if symmetric else 2**bits - 1), FLOAT32_TINY)
    below = np.floor((groups - low) / step)
    is_near = np.abs((groups - low) / step - below - 0.5) < CODE_MARGIN
    moved = np.where(is_near, low + (below + 0.75) * step, groups)
    return np.float32(moved.T if granularity is Granularity.CHANNEL else moved.reshape(x.shape))


def is_clear_of_e2m1_ties(quotients: np.ndarray) -> np.ndarray:
    """Return, for each row of quotients, whether none is so near a tie that float32 could move it across."""
    distance = np.abs(np.abs(quotients[..., None]) / E2M1_TIES.astype(np.float64) - 1)
    return np.asarray((distance > E2M1_MARGIN).all(axis=(-1, -2)))


def noisy(cases: Any, n_tokens: int, width: int, loud: Any = (), size: float = 1.0) -> np.ndarray:
    """Return values from 0.1 to 1 with drawn signs, in float32, some channels `size` times as large.

    Each channel reaches 1, times its size, at some token, where it is above 0.
    """
    x = cases.rng.uniform(0.1, 1, (n_tokens, width)) * cases.rng.choice([-1, 1], (n_tokens, width))
    peak = cases.rng.integers(n_tokens, size=width)
    x[peak, np.arange(width)] = 1
    x[:, list(loud)] *= size
    return np.float32(x)


def draw_channels(cases: Any, width: int, count: int) -> np.ndarray:
    """Return so many different channels, in order."""
    return np.sort(cases.rng.choice(width, count, replace=False))
