"""`E2M1_MEAN_SQUARE_ERRORS`: integrated over Gaussian groups, and measured on groups that were quantised."""

from typing import Final

import numpy as np
import pytest
from fp4kv import dequantise, quantise_e2m1, round_to_e4m3
from labkit.formats import E2M1_MAX, E2M1_MEAN_SQUARE_ERRORS, E2M1_TIES, E2M1_VALUES, E4M3_MIN_SUBNORMAL, GROUP_LENGTH
from scipy.stats import norm

HALF_A_DIGIT: Final = 0.00005  # the table has four decimals
N_ERRORS: Final = 5  # standard errors that a measurement may be off: eight codes exceed that once in 200,000
N_BATCHES: Final = 64
QUADRATURE: Final = 5e-6  # half as many steps change no code's mean by more, which a test holds


def integrated(sigma: float, n_steps: int = 1 << 17) -> np.ndarray:
    """The mean square error of codes 0 to 7 in units of s², for groups of 16 values of this standard deviation.

    The largest magnitude a of a group has the density 16 · (2Φ(a) - 1)^15 · 2φ(a); the other 15 are normal within ±a.
    """
    a = (np.arange(n_steps) + 0.5) * 8 / n_steps
    within = 2 * norm.cdf(a) - 1
    density = 16 * within**15 * 2 * norm.pdf(a)
    scale = round_to_e4m3(np.maximum(a * sigma / E2M1_MAX, E4M3_MIN_SUBNORMAL)).astype(np.float64) / sigma
    edges = np.concatenate([[0], E2M1_TIES, [np.inf]])

    means = np.empty(8)
    for code, value in enumerate(E2M1_VALUES.astype(np.float64)):
        low, high = (np.minimum(edge * scale, a) for edge in edges[code : code + 2])
        share = 2 * (norm.cdf(high) - norm.cdf(low)) / within
        first = 2 * (norm.pdf(low) - norm.pdf(high)) / within
        second = share + 2 * (low * norm.pdf(low) - high * norm.pdf(high)) / within
        others = (second - 2 * value * scale * first + (value * scale) ** 2 * share) / scale**2
        is_here = (a > edges[code] * scale) & (a <= edges[code + 1] * scale)
        square = 15 * others + is_here * (a / scale - value) ** 2
        means[code] = (density * square).sum() / (density * (15 * share + is_here)).sum()
    return means


def measured(rng: np.random.Generator, n_groups: int = 6250) -> tuple[np.ndarray, np.ndarray]:
    """The mean square errors of 6.4 million values in batches, and their standard errors from batch to batch."""
    batches = np.empty((N_BATCHES, 8))
    for batch in batches:
        x = rng.normal(size=(n_groups, GROUP_LENGTH)).astype(np.float32)
        quantised = quantise_e2m1(x)
        squares = ((x - dequantise(quantised).astype(np.float64)) / quantised.scales) ** 2
        codes = (quantised.codes & 7).ravel()
        batch[:] = np.bincount(codes, squares.ravel()) / np.bincount(codes)
    return batches.mean(axis=0), batches.std(axis=0) / np.sqrt(N_BATCHES)


def test_the_table_is_the_integral() -> None:
    difference = np.abs(integrated(1.0) - E2M1_MEAN_SQUARE_ERRORS)
    assert (difference <= HALF_A_DIGIT + QUADRATURE).all(), difference
    assert np.abs(integrated(1.0) - integrated(1.0, 1 << 16)).max() <= QUADRATURE


def test_the_table_is_what_is_measured(rng: np.random.Generator) -> None:
    means, errors = measured(rng)
    difference = np.abs(means - E2M1_MEAN_SQUARE_ERRORS)
    assert (difference <= HALF_A_DIGIT + N_ERRORS * errors).all(), (means, errors)


def test_other_variances_hardly_change_it() -> None:
    tables = np.array([integrated(2 ** (step / 8)) for step in range(8)])
    assert (np.ptp(tables[:, :7], axis=0) <= 2 * HALF_A_DIGIT).all()
    assert (tables[:, 7].min(), tables[:, 7].max()) == pytest.approx((0.1794, 0.1806), abs=HALF_A_DIGIT + QUADRATURE)


def test_values_spread_evenly_have_the_thirds_of_their_cells() -> None:
    # (u³ + d³) / 3(u + d) for a cell that reaches u up and d down; width²/12 only where u = d.
    ups, downs = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1]), np.array([0.25, 0.25, 0.25, 0.25, 0.25, 0.5, 0.5])
    even = (ups**3 + downs**3) / (3 * (ups + downs))
    assert even.tolist() == pytest.approx([1 / 48] * 4 + [1 / 16, 1 / 12, 1 / 4])
    table = E2M1_MEAN_SQUARE_ERRORS[:7]
    width_squared = (ups + downs) ** 2 / 12
    is_lopsided = ups != downs
    assert (table[is_lopsided] < even[is_lopsided]).all() and (table[is_lopsided] > width_squared[is_lopsided]).all()
    assert np.abs(table - even)[~is_lopsided].max() < 0.0002  # in the others the density's slope cancels
