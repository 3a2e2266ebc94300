"""How far a right `decode_attention` in float32 can be from the exact one: derived, for each number of the output.

Letters: `l` logit, `p` attention weight, `v` value, `o` output, `u` unit roundoff of float32, `D` head width.

A kernel's output is Σ wᵢvᵢ / Σ wᵢ in float32 with wᵢ = exp(lᵢ - m); the exact one is o = Σ pᵢvᵢ. To first order in u:

- A weight that is off by the factor 1 + κᵢ, in both sums alike, moves o by Σ pᵢκᵢ(vᵢ - o). A logit is D products, each
  rounded, then rounded again by D - 1 additions at most, and scaled by 1/√D, which takes up to 4 roundings more:
  |Δlᵢ| ≤ (D + 4)u · Σ|q_c k_ic| / √D. A weight is a product of exponentials: of lᵢ less the maximum of its tile, and of
  each maximum less the next, a factor for each tile and one for the parts. The exponents add up to lᵢ - m, so their
  subtractions cost |lᵢ - m|u together; each exponential costs 4u (2 units in the last place), its product u.
  Keys and values cost nothing: an E2M1 number times an E4M3 scale is exact in float32.
- Rounding in one sum only moves o by that much of the sum: a product and an addition for each token of a part, an
  addition for each tile and each part, a division at the end. That is n·u of Σ pᵢ|vᵢ| above, and of |o| below.
- A weight below 2^-126 may be 0, and the sum of all is at least 1.

The terms of second order are below u · (sum of all counts) of the first, and that is below 1 % up to 100,000 of them.

Source: CUDA C++ Programming Guide, mathematical functions: expf is off by 2 units in the last place at most.
"""

from typing import Final

import numpy as np
from jaxtyping import Float64
from labkit.launches import TILE, tokens_per_part

from fp4kv.kernel_cases import AttentionCase
from fp4kv.kernels import decode_attention, dequantise_packed

UNIT_ROUNDOFF: Final = 2.0**-24
"""Half the step of float32 numbers between 1 and 2: the relative error of one rounding."""

EXPONENTIAL: Final = 4
"""The error of expf in unit roundoffs: 2 units in the last place, of up to 2 unit roundoffs each."""

SMALLEST_WEIGHT: Final = 2.0**-126
"""What underflows below this, may be flushed to 0."""

SECOND_ORDER: Final = 1.01
"""The derivation is of first order."""


def decode_attention_tolerance(case: AttentionCase) -> Float64[np.ndarray, "B heads D"]:
    """Return how far each number of a kernel's output may be from `decode_attention`."""
    exact = decode_attention(*case[:-1])
    group = case.q.shape[1] // case.k_packed.shape[1]
    part_tokens = tokens_per_part(case.k_packed.shape[2], case.n_parts)

    tolerance = np.zeros(exact.shape)
    for sequence, head in np.ndindex(exact.shape[:2]):
        counted = sequence, head // group, slice(case.lengths[sequence])
        if case.lengths[sequence] > 0:
            keys = dequantise_packed(case.k_packed[counted], case.k_scales[counted])
            values = dequantise_packed(case.v_packed[counted], case.v_scales[counted])
            tolerance[sequence, head] = _tolerance_of_head(case.q[sequence, head], keys, values, part_tokens)
    return tolerance


def _tolerance_of_head(q: np.ndarray, keys: np.ndarray, values: np.ndarray, part_tokens: int) -> np.ndarray:
    """Return the tolerance of one query's output."""
    width, n_tokens = q.size, len(keys)
    products = q.astype(np.float64) * keys / np.sqrt(width)
    logits = products.sum(axis=-1)
    below = logits - logits.max()
    p = np.exp(below) / np.exp(below).sum()
    output = p @ values
    n_tiles, n_parts = -(-min(part_tokens, n_tokens) // TILE), -(-n_tokens // part_tokens)

    of_logits = (width + 4) * np.abs(products).sum(axis=-1)
    of_weights = of_logits - below + (n_tiles + 2) * (EXPONENTIAL + 1)
    of_sums = 1 + min(part_tokens, n_tokens) + n_tiles + n_parts + 1
    moved = (p * of_weights) @ np.abs(values - output) + of_sums * (p @ np.abs(values) + np.abs(output))
    flushed = n_tokens * SMALLEST_WEIGHT * np.abs(values - output).max(axis=0)
    return np.asarray(SECOND_ORDER * UNIT_ROUNDOFF * moved + flushed)
