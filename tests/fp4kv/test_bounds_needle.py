"""`needle_tolerance` against every corner of what logits can do: kept up to there, and lost beyond."""

import itertools

import numpy as np
import pytest
from fp4kv import needle_tolerance
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

SEEDS = st.integers(0, 2**32 - 1)
MARGINS, MASSES = st.floats(0, 12), st.floats(0.01, 0.99)
ROUNDING = 1e-14  # of a weight, from exponentials of numbers that float64 holds to 12 · 2^-53


@given(context=st.integers(2, 7), margin=MARGINS, mass=MASSES)
def test_a_needle_keeps_its_mass_up_to_the_tolerance_and_no_further(context: int, margin: float, mass: float) -> None:
    logits = np.append(margin, np.zeros(context - 1))
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=context)))
    tolerance = needle_tolerance(context, margin, mass)

    def least(epsilon: float) -> float:
        return float(softmax(logits + epsilon * corners, axis=-1)[:, 0].min())

    if tolerance > 0:
        assert least(tolerance) >= mass - ROUNDING
    assert least(tolerance + 1e-6) < mass  # 2e-6 of a logit is at least 2e-6 · mass · (1 - mass) of weight


@given(seed=SEEDS, margin=MARGINS, mass=MASSES)
def test_a_needle_among_lower_logits_keeps_its_mass(seed: int, margin: float, mass: float) -> None:
    rng = np.random.default_rng(seed)
    logits = np.append(margin, -rng.exponential(2, 50))
    tolerance = needle_tolerance(51, margin, mass)
    moved = logits + rng.uniform(-tolerance, tolerance, (200, 51))
    if tolerance > 0:
        assert softmax(moved, axis=-1)[:, 0].min() >= mass - ROUNDING


def test_needle_at_its_limits() -> None:
    assert needle_tolerance(1, -5.0, 0.9) == np.inf
    assert needle_tolerance(131_072, np.log(131_071), 0.5) == 0
    assert needle_tolerance(10, -1.0, 0.5) == 0
    assert needle_tolerance(3, np.log(2) + 0.5, 0.5) == pytest.approx(0.25, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0, 0.5), "context: expected at least one token, got 0"),
        ((5, 1.0, 0.0), "mass: expected a share between 0 and 1, got 0.0"),
        ((5, 1.0, 1.0), "mass: expected a share between 0 and 1, got 1.0"),
        ((5, 1.0, float("nan")), "mass: expected a share between 0 and 1, got nan"),
    ],
)
def test_needles_that_make_no_sense_are_refused(arguments: tuple[int, float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        needle_tolerance(*arguments)
