"""Tasks of `lab03_errors` on error: what a packed cache guarantees, and what it lets one expect.

Both come from the query and the packed cache alone: the values that were quantised are gone.
Letters: `q k v o` query, key, value, output; `p` attention weights; `r` radius of a code in units of its scale `s`;
`T` tokens, `D` head width of keys, `E` of values, `n` queries. A hat, as in k̂, marks what was decoded.
"""

import math

import numpy as np
from jaxtyping import Float, Float64
from labkit.formats import (
    E2M1_MEAN_SQUARE_ERRORS,
    E4M3_MAX,
    E4M3_MIN_SUBNORMAL,
    GROUP_LENGTH,
    QuantisedE2M1,
)
from labkit.given.lab02 import dequantise

from fp4kv.attention import attention_weights


def needle_tolerance(context: int, margin: float, mass: float) -> float:
    """Return how far every logit may move while a needle surely keeps its mass.

    That is at least `mass` of the weight. The needle's logit is at least `margin` above each of the other
    `context - 1`. Sufficient, not necessary; 0 where nothing is guaranteed, infinity where the needle is alone.

    Raises
    ------
    ValueError
        If `context` is below 1 or `mass` is not between 0 and 1.

    Example
    -------
    >>> round(needle_tolerance(context=1001, margin=10.0, mass=0.5), 3)
    1.546
    """
    if context < 1:
        raise ValueError(f"context: expected at least one token, got {context}")
    if not 0 < mass < 1:
        raise ValueError(f"mass: expected a share between 0 and 1, got {mass}")
    if context == 1:
        return math.inf
    return max(0.0, (margin - math.log((context - 1) * mass / (1 - mass))) / 2)


def error_radius(quantised: QuantisedE2M1) -> Float64[np.ndarray, "... n"]:
    """Return how far each element can have been from what it is decoded to: r(c) · s.

    With one E4M3 scale per group and no tensor scale. Code 7 may have clipped: its radius is larger under the
    smallest scales, and infinite under the largest.

    Raises
    ------
    ValueError
        If there is a tensor scale other than 1.

    Example
    -------
    >>> error_radius(QuantisedE2M1(np.arange(16, dtype=np.uint8), np.ones(1, np.float32), 1.0))[:8]
    array([0.25, 0.25, 0.25, 0.25, 0.5 , 0.5 , 1.  , 1.  ])
    """
    if quantised.tensor_scale != 1:
        raise ValueError(f"quantised: expected a tensor scale of 1 (ScaleRule.GROUP), got {quantised.tensor_scale}")
    scales = np.repeat(quantised.scales.astype(np.float64), GROUP_LENGTH, axis=-1)
    magnitudes = quantised.codes & 0b0_11_1
    radii = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1, 1])[magnitudes] * scales

    # amax is at most 6 half steps of E4M3 above 6s: less than s, but for subnormal scales, whose step is 2^-9
    clipped = np.where(scales < E4M3_MAX, 3 * E4M3_MIN_SUBNORMAL, np.inf)
    return np.asarray(np.where(magnitudes == 7, np.maximum(radii, clipped), radii))


def logit_error_bound(q: Float[np.ndarray, "n D"], keys: QuantisedE2M1) -> Float64[np.ndarray, "n T"]:
    """Return how far each logit q·k / √D can be from q·k̂ / √D, a guarantee.

    That is Σ_c |q_c| r_c s_c / √D. Infinite where q meets an element without a radius; a channel in which q is 0
    counts nothing.

    Raises
    ------
    ValueError
        If the keys have a tensor scale other than 1.

    Example
    -------
    >>> keys = QuantisedE2M1(np.array([[2, 7] + [0] * 14], np.uint8), np.ones((1, 1), np.float32), 1.0)
    >>> logit_error_bound(np.array([[1.0, -2.0] + [0.0] * 14]), keys)
    array([[0.5625]])
    """
    size, radii = np.abs(np.asarray(q, np.float64)), error_radius(keys)
    is_unbounded = np.isinf(radii)
    bound = size @ np.where(is_unbounded, 0, radii).T / np.sqrt(q.shape[-1])
    return np.where((size > 0).astype(np.float64) @ is_unbounded.T > 0, np.inf, bound)


def weight_error_bound(logit_errors: Float[np.ndarray, "n T"]) -> Float64[np.ndarray, " n"]:
    """Return how far the weights of each query can move.

    The total variation of p and p̂, ½ Σ|p̂_i - p_i|, is at most tanh(ε / 2) when logit i moves by at most e_i. ε is
    half of what two logits can move apart: half the sum of the two largest e_i. A lone key has weight 1 and keeps it.

    Example
    -------
    >>> weight_error_bound(np.array([[0.1, 0.3, 0.5]])).round(4)
    array([0.1974])
    """
    n_tokens = logit_errors.shape[-1]
    if n_tokens == 1:
        return np.zeros(logit_errors.shape[0])
    two_largest = np.partition(np.asarray(logit_errors, np.float64), n_tokens - 2, axis=-1)[..., -2:]
    return np.asarray(np.tanh(two_largest.sum(axis=-1) / 4))


def output_error_bound(
    q: Float[np.ndarray, "n D"], keys: QuantisedE2M1, values: QuantisedE2M1
) -> Float64[np.ndarray, " n"]:
    """Return how far each output can be from that of the packed cache, a guarantee.

    The norm of their difference is at most tanh(ε / 2) · diam + Σ p̂_i ‖r_i‖, where r_i are the radii of value i, ε is
    that of `weight_error_bound`, and the diameter of the values that were quantised is at most the largest
    ‖v̂_i - v̂_j‖ + ‖r_i‖ + ‖r_j‖ over i ≠ j, 0 for a lone value. Infinite if a value has no radius.

    Raises
    ------
    ValueError
        If keys or values have a tensor scale other than 1.

    Example
    -------
    >>> scales = np.ones((2, 1), np.float32)
    >>> keys = QuantisedE2M1(np.array([[2] + [0] * 15, [0] * 16], np.uint8), scales, 1.0)
    >>> values = QuantisedE2M1(np.array([[0] * 16, [6] + [0] * 15], np.uint8), scales, 1.0)
    >>> output_error_bound(np.array([[1.0] + [0.0] * 15]), keys, values).round(3)
    array([1.371])
    """
    decoded = dequantise(values).astype(np.float64)
    radii = np.linalg.norm(error_radius(values), axis=-1)
    if np.isinf(radii).any():
        return np.full(len(q), np.inf)

    weights = attention_weights(q, dequantise(keys))
    moved = weight_error_bound(logit_error_bound(q, keys)) * _diameter(decoded, radii)
    return np.asarray(moved + weights @ radii)


def _diameter(points: Float64[np.ndarray, "T E"], radii: Float64[np.ndarray, " T"]) -> float:
    """Return the largest distance between two balls' far ends; 0 for a lone ball.

    Decoded E2M1 values are multiples of 2^-10 below 2500 where they have a radius: up to 512 channels, their squares
    and products add up in float64 without rounding, so that points close together keep their distance.
    """
    squares = (points**2).sum(axis=-1)
    widest = 0.0
    for start in range(0, len(points), 128):  # so many rows of distances at once fit the processor's cache
        some = slice(start, start + 128)
        squared = squares[some, None] + squares[start:] - 2 * points[some] @ points[start:].T
        reach = np.sqrt(np.maximum(squared, 0)) + radii[some, None] + radii[start:]
        np.fill_diagonal(reach, 0)
        widest = max(widest, float(reach.max()))
    return widest


def predict_output_error(
    q: Float[np.ndarray, "n D"], keys: QuantisedE2M1, values: QuantisedE2M1
) -> Float64[np.ndarray, " n"]:
    """Return the root mean square error to expect of each output, an estimate.

    √(Σ p̂_i² (σ_i² ‖v̂_i - ô‖² + Σ_c Var Δv_ic)) with σ_i² = Σ_c q_c² Var Δk_ic / D, where Var Δx is s² times the
    mean square of the code in `E2M1_MEAN_SQUARE_ERRORS`, and s includes the tensor scale. No guarantee: it takes
    errors to be independent, of mean zero, and so small that the first order is enough.

    Example
    -------
    >>> scales = np.ones((2, 1), np.float32)
    >>> keys = QuantisedE2M1(np.array([[2] + [0] * 15, [0] * 16], np.uint8), scales, 1.0)
    >>> values = QuantisedE2M1(np.array([[0] * 16, [6] + [0] * 15], np.uint8), scales, 1.0)
    >>> predict_output_error(np.array([[1.0] + [0.0] * 15]), keys, values).round(3)
    array([0.456])
    """
    q = np.asarray(q, np.float64)
    decoded = dequantise(values).astype(np.float64)
    weights = attention_weights(q, dequantise(keys))
    output = weights @ decoded

    logit_variance = q**2 @ _error_variance(keys).T / q.shape[-1]
    spread = (decoded**2).sum(-1) - 2 * output @ decoded.T + (output**2).sum(-1, keepdims=True)
    variance = logit_variance * np.maximum(spread, 0) + _error_variance(values).sum(-1)
    return np.asarray(np.sqrt((weights**2 * variance).sum(-1)))


def _error_variance(quantised: QuantisedE2M1) -> Float64[np.ndarray, "T n"]:
    """Return the mean square error to expect of each element."""
    scales = np.repeat(quantised.scales.astype(np.float64), GROUP_LENGTH, axis=-1)
    return np.asarray(E2M1_MEAN_SQUARE_ERRORS[quantised.codes & 0b0_11_1] * (scales * quantised.tensor_scale) ** 2)
