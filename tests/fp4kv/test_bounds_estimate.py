"""`predict_output_error`: right where its assumptions hold, and wrong by known factors where they do not.

A factor is the root mean square of the estimates over that of the true errors, pooled over seeds.
"""

import itertools
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np
import pytest
from fp4kv import attend, dequantise, logit_error_bound, output_error_bound, predict_output_error, quantise_e2m1
from labkit import tensors

Rng = np.random.Generator
Case = tuple[np.ndarray, np.ndarray, np.ndarray]
N_SEEDS: Final = 200
PROMISED: Final = 0.15  # what the lab asks of an estimate, of its RMS over 200 seeds
N_ERRORS: Final = 4  # standard errors that a measured factor may be from the one written down: once in 16,000
HALF_A_DIGIT: Final = 0.005  # of a factor with two decimals


class Factor(NamedTuple):
    """Estimate over truth, and the standard error of that ratio over independent cases."""

    value: float
    standard_error: float


def factor(cases: Iterable[Case]) -> Factor:
    """Measure how far the estimate is off over these cases."""
    squares = np.array([estimate_and_error(*case) for case in cases]) ** 2
    estimate, truth = squares.mean(axis=0)
    # to first order, ln(estimate / truth) varies as the mean of the differences of the relative squares
    relative = squares / squares.mean(axis=0)
    spread = (relative[:, 0] - relative[:, 1]).std() / np.sqrt(len(squares)) / 2
    value = float(np.sqrt(estimate / truth))
    return Factor(value, value * float(spread))


def estimate_and_error(q: np.ndarray, keys: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """The root mean squares over the queries of what is predicted and of what is true."""
    packed_keys, packed_values = quantise_e2m1(keys), quantise_e2m1(values)
    moved = attend(q, keys, values) - attend(q, dequantise(packed_keys), dequantise(packed_values))
    predicted = predict_output_error(q, packed_keys, packed_values)
    return float(np.sqrt((predicted**2).mean())), float(np.sqrt((moved**2).sum(-1).mean()))


def normal(rng: Rng, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def gaussian(rng: Rng, n_tokens: int = 512, width: int = 64) -> Case:
    return normal(rng, 1, width), normal(rng, n_tokens, width), normal(rng, n_tokens, width)


def correlated_values(rng: Rng) -> Case:
    """Values that are nearly the same: so are their errors, which then do not average."""
    q, keys, values = gaussian(rng)
    return q, keys, np.float32(0.99) * normal(rng, 1, 64) + np.float32(np.sqrt(1 - 0.99**2)) * values


def a_loud_channel(rng: Rng) -> Case:
    """One key channel × 30: logits move by more than 1, where the first order is not enough."""
    q, keys, values = gaussian(rng)
    keys[:, 5] *= 30
    return q, keys, values


def integers(rng: Rng) -> Case:
    """Whole numbers that the grid of nearly every group holds exactly."""
    q, keys, values = gaussian(rng)
    return q, *(rng.integers(-3, 4, x.shape).astype(np.float32) for x in (keys, values))


def uniform(rng: Rng) -> Case:
    q, keys, values = gaussian(rng)
    return q, *(rng.uniform(-1, 1, x.shape).astype(np.float32) for x in (keys, values))


def heavy_tails(rng: Rng) -> Case:
    q, keys, values = gaussian(rng)
    return q, *(rng.standard_t(3, x.shape).astype(np.float32) for x in (keys, values))


def real(layer: int) -> Iterable[Case]:
    """The three heads of a layer of a real decoder, each with the queries that read it."""
    keys, values, queries = tensors.load_keys(layer), tensors.load_values(layer), tensors.load_queries(layer)
    return ((queries[:, 3 * h : 3 * h + 3].reshape(-1, 64), keys[:, h], values[:, h]) for h in range(3))


def seeded(make: Callable[[Rng], Case], rng: Rng, n_seeds: int = N_SEEDS) -> Iterable[Case]:
    return (make(child) for child in itertools.islice(rng.spawn(n_seeds), n_seeds))


@pytest.mark.parametrize(("n_tokens", "width"), [(512, 32), (512, 64), (512, 128), (1024, 64)])
def test_estimate_is_right_for_independent_gaussian_numbers(n_tokens: int, width: int, rng: Rng) -> None:
    measured = factor(seeded(lambda child: gaussian(child, n_tokens, width), rng))
    assert abs(measured.value - 1) <= PROMISED, measured


def test_the_promise_asks_for_small_logit_errors_and_gaussian_queries_have_them(rng: Rng) -> None:
    for q, keys, _ in seeded(gaussian, rng, 50):
        moved = np.abs(q.astype(float) @ (keys - dequantise(quantise_e2m1(keys)).astype(float)).T).max() / np.sqrt(64)
        assert moved < 1 < logit_error_bound(q, quantise_e2m1(keys)).max()


FACTORS: Final = {
    # measured over 4,000 cases of 512 tokens and width 64 from other seeds
    correlated_values: 0.35,
    a_loud_channel: 2.3,
    uniform: 0.90,
    heavy_tails: 1.47,
}


@pytest.mark.parametrize("make", FACTORS)
def test_estimate_breaks_by_the_factor_that_was_measured(make: Callable[[Rng], Case], rng: Rng) -> None:
    measured = factor(seeded(make, rng))
    assert abs(measured.value - FACTORS[make]) <= N_ERRORS * measured.standard_error + HALF_A_DIGIT, measured


def test_estimate_of_whole_numbers_is_far_too_large(rng: Rng) -> None:
    # Groups with a 3 in them have the scale 1/2 and are exact: all but (5/7)^16, one in 218. Their squares are missing
    # from the sum of the errors but not from the estimate, which is thus √218 = 15 times too large at least.
    assert factor(seeded(integers, rng)).value >= 15


REAL: Final = {0: 0.78, 5: 1.04, 10: 1.32, 18: 0.98, 23: 1.22, 29: 1.25}
"""The same factor for real keys, values and queries, by layer; measured here, and nothing in it is random."""


@pytest.mark.parametrize("layer", REAL)
def test_estimate_of_real_tensors(layer: int) -> None:
    assert factor(real(layer)).value == pytest.approx(REAL[layer], abs=HALF_A_DIGIT)


@pytest.mark.parametrize("layer", tensors.LAYERS)
def test_guarantee_of_real_tensors_is_loose_by_a_factor_of_20_to_400(layer: int) -> None:
    for q, keys, values in real(layer):
        packed = quantise_e2m1(keys), quantise_e2m1(values)
        moved = attend(q, keys, values) - attend(q, *(dequantise(part) for part in packed))
        looseness = np.median(output_error_bound(q, *packed) / np.linalg.norm(moved, axis=-1))
        assert 20 <= looseness <= 400
