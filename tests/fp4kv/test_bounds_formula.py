"""Guarantee and estimate are the formulas as they are printed: again with plain loops, and no tighter or looser."""

import math
from itertools import combinations

import numpy as np
import pytest
from fp4kv import (
    dequantise,
    error_radius,
    logit_error_bound,
    output_error_bound,
    predict_output_error,
    quantise_e2m1,
    weight_error_bound,
)
from hypothesis import given
from hypothesis import strategies as st
from labkit.expect import expect_close, expect_values
from labkit.formats import E2M1_MEAN_SQUARE_ERRORS, QuantisedE2M1, ScaleRule
from scipy.spatial.distance import cdist
from scipy.special import softmax

SEEDS = st.integers(0, 2**32 - 1)
# Sums of at most 500 float64 products in another order, some of them exponents: 500 · 2^-53 of numbers below 20.
ROUNDING = 1e-12


def packed(rng: np.random.Generator, n_tokens: int, width: int, size: float = 1.0) -> QuantisedE2M1:
    return quantise_e2m1((rng.normal(size=(n_tokens, width)) * size).astype(np.float32))


def close(got: np.ndarray, expected: object, given: object) -> None:
    expect_close(got, np.asarray(expected), ROUNDING * float(np.abs(expected).max()), given=given)


@given(seed=SEEDS, n_tokens=st.integers(1, 4))
def test_logit_bound_is_the_sum_that_is_printed(seed: int, n_tokens: int) -> None:
    rng = np.random.default_rng(seed)
    q, keys = rng.normal(size=(2, 32)), packed(rng, n_tokens, 32)
    radii = error_radius(keys)
    expected = [[sum(abs(q[n, c]) * radii[i, c] for c in range(32)) / 32**0.5 for i in range(n_tokens)] for n in (0, 1)]
    close(logit_error_bound(q, keys), expected, seed)


@given(limits=st.lists(st.floats(0, 20), min_size=2, max_size=6))
def test_weight_bound_is_of_the_pair_that_can_move_furthest_apart(limits: list[float]) -> None:
    expected = max(math.tanh((one + other) / 4) for one, other in combinations(limits, 2))
    close(weight_error_bound(np.array([limits])), [expected], limits)


@pytest.mark.parametrize("n_tokens", [1, 2, 127, 128, 129, 300])
@pytest.mark.parametrize("size", [0.01, 1.0])
def test_output_bound_is_what_is_printed(n_tokens: int, size: float, rng: np.random.Generator) -> None:
    q, keys, values = rng.normal(size=(3, 32)) * 0.1, packed(rng, n_tokens, 32), packed(rng, n_tokens, 48, size)
    decoded, radii = dequantise(values).astype(np.float64), np.linalg.norm(error_radius(values), axis=-1)
    reach = cdist(decoded, decoded) + radii + radii[:, None]
    diameter = reach[~np.eye(n_tokens, dtype=bool)].max(initial=0)
    weights = softmax(q @ dequantise(keys).T / np.sqrt(32), axis=-1)
    expected = weight_error_bound(logit_error_bound(q, keys)) * diameter + weights @ radii
    close(output_error_bound(q, keys, values), expected, (n_tokens, size))


@pytest.mark.parametrize("n_tokens", [2, 130])
def test_values_close_together_and_far_away_keep_their_distance(n_tokens: int) -> None:
    # 1800 in 255 channels, and in one 2^-10 or 2^-9: the squares of the norms, 8e8, hide their difference, 1e-6.
    codes, scales = np.full((n_tokens, 512), 6, np.uint8), np.full((n_tokens, 32), 416, np.float32)
    codes[:, 496:], scales[:, 31] = 0, 2.0**-9
    codes[0, 496], codes[1:, 496] = 1, 2
    values = QuantisedE2M1(codes, scales, 1.0)
    keys = QuantisedE2M1(np.full((n_tokens, 16), 6, np.uint8), np.ones((n_tokens, 1), np.float32), 1.0)

    q = np.full((1, 16), 10.0)  # tanh(ε / 2) is 1
    radii = np.linalg.norm(error_radius(values), axis=-1)
    expect_values(output_error_bound(q, keys, values) - radii[0] - 2 * radii[0], np.array([2.0**-10]), given="distance")


def test_a_value_makes_no_diameter_with_itself() -> None:
    # Radii of 100 and 1 about the same point: the values were at most 101 apart, and not 200.
    values = QuantisedE2M1(np.zeros((2, 16), np.uint8), np.float32([[100], [1]]), 1.0)
    keys = QuantisedE2M1(np.full((2, 16), 6, np.uint8), np.ones((2, 1), np.float32), 1.0)
    q = np.full((1, 16), 10.0)  # tanh(ε / 2) is 1
    expect_values(output_error_bound(q, keys, values), np.array([101 + 50.5]), given="radii of 100 and 1")


@given(seed=SEEDS, n_tokens=st.integers(1, 4), rule=st.sampled_from(ScaleRule))
def test_estimate_is_the_sum_that_is_printed(seed: int, n_tokens: int, rule: ScaleRule) -> None:
    rng = np.random.default_rng(seed)
    q, x = rng.normal(size=(1, 32)), rng.normal(size=(2, n_tokens, 32)).astype(np.float32)
    keys, values = quantise_e2m1(x[0], rule), quantise_e2m1(x[1], rule)
    decoded = dequantise(values).astype(np.float64)
    p = softmax(q @ dequantise(keys).T.astype(np.float64) / np.sqrt(32), axis=-1)[0]
    output = p @ decoded

    def variance(quantised: QuantisedE2M1, token: int, channel: int) -> float:
        step = float(quantised.scales[token, channel // 16]) * quantised.tensor_scale
        return float(E2M1_MEAN_SQUARE_ERRORS[quantised.codes[token, channel] % 8]) * step**2

    total = 0.0
    for i in range(n_tokens):
        logit = sum(q[0, c] ** 2 * variance(keys, i, c) for c in range(32)) / 32
        value = sum(variance(values, i, c) for c in range(32))
        total += p[i] ** 2 * (logit * ((decoded[i] - output) ** 2).sum() + value)
    close(predict_output_error(q, keys, values), [math.sqrt(total)], seed)


@pytest.mark.parametrize("function", [logit_error_bound, error_radius])
def test_keys_with_a_tensor_scale_are_refused_by_guarantees(function, rng: np.random.Generator) -> None:
    keys = quantise_e2m1(rng.normal(size=(2, 16)), ScaleRule.TENSOR_AND_GROUP)
    arguments = (keys,) if function is error_radius else (np.ones((1, 16)), keys)
    with pytest.raises(ValueError, match="quantised: expected a tensor scale of 1"):
        function(*arguments)


@pytest.mark.parametrize("which", ["keys", "values"])
def test_a_cache_with_a_tensor_scale_has_no_guaranteed_output(which: str, rng: np.random.Generator) -> None:
    cache = {"keys": packed(rng, 2, 16), "values": packed(rng, 2, 16)}
    cache[which] = quantise_e2m1(rng.normal(size=(2, 16)), ScaleRule.TENSOR_AND_GROUP)
    with pytest.raises(ValueError, match="quantised: expected a tensor scale of 1"):
        output_error_bound(np.ones((1, 16)), **cache)
