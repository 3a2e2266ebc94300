"""The error of each channel, and the best scheme within a budget, against an exhaustive search."""

import inspect
import math

import fp4kv
import numpy as np
import pytest
from fp4kv import channel_error, choose_scheme
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labkit.candidates import Parts, candidates
from labkit.expect import expect_close, expect_values
from labkit.formats import Cached
from labkit.tensors import load_keys, load_values

PARTS = Parts(
    fp4kv.quantise_with_granularity,
    fp4kv.split_outliers,
    fp4kv.rotate_hadamard,
    fp4kv.centre_keys,
    fp4kv.scale_four_over_six,
)
MATRICES = hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.floats(-1e6, 1e6))
FEW_ROUNDINGS = 2.0**-48
"""Sums of at most 512 squares, a root and a quotient, in two orders: relatively less than 32 · 2^-53."""


def error_by_loop(x: np.ndarray, decoded: np.ndarray) -> list[float]:
    """The relative error of each channel, one number after the other."""
    errors = []
    for channel, back in zip(x.T.tolist(), decoded.T.tolist(), strict=True):
        size = math.sqrt(math.fsum(a * a for a in channel))
        error = math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(channel, back, strict=True)))
        errors.append(error / size if size else (math.inf if error else 0.0))
    return errors


def best_by_search(found: dict[str, Cached], errors: dict[str, float], budget: float) -> set[str]:
    """All candidates that fit and are as good as the best one but for rounding, by looking at every one."""
    fitting = [name for name in found if found[name].bits_per_element <= budget]
    least = min(errors[name] for name in fitting)
    return {name for name in fitting if errors[name] <= least * (1 + FEW_ROUNDINGS)}


@given(x=MATRICES, data=st.data())
def test_channel_error_agrees_with_a_loop(x: np.ndarray, data: st.DataObject) -> None:
    decoded = data.draw(hnp.arrays(np.float64, x.shape, elements=st.floats(-1e6, 1e6)))
    x[np.abs(x) < 1e-100] = 0  # whose square would vanish
    decoded[np.abs(decoded) < 1e-100] = 0
    got, expected = channel_error(x, decoded), np.array(error_by_loop(x, decoded))
    finite = np.isfinite(expected)
    assert np.array_equal(np.isfinite(got), finite), (x, decoded)
    assert (np.abs(got[finite] - expected[finite]) <= FEW_ROUNDINGS * expected[finite]).all(), (x, decoded)


def test_channel_error_of_float32_is_computed_in_float64() -> None:
    x, decoded = np.float32([[1e30], [1e30]]), np.float32([[1e30], [2e30]])  # squares are no float32
    expect_close(channel_error(x, decoded), np.array([np.sqrt(0.5)]), 1e-6, given=x)
    tiny = np.float32([[1e-30], [0]])
    expect_values(channel_error(tiny, np.zeros((2, 1), np.float32)), np.array([1.0]), given=tiny)


def test_channels_of_zeros_and_of_nan() -> None:
    x = np.float64([[0, 0, 0, 1], [0, 0, 0, 1]])
    decoded = np.float64([[0, 0, np.nan, np.nan], [0, 1e-9, 0, 1]])
    expect_values(channel_error(x, decoded), np.array([0, np.inf, np.inf, np.nan]), given=(x, decoded))


@pytest.mark.parametrize("shape", [(2, 1), (1, 3), (3,), ()])
def test_arrays_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"decoded: expected the shape of x, \(2, 3\), got shape \("):
        inspect.unwrap(channel_error)(np.ones((2, 3)), np.ones(shape))


def loud(rng: np.random.Generator, size: float, shape: tuple[int, int] = (96, 32)) -> np.ndarray:
    """Gaussian values, one channel of them so many times as large."""
    x = rng.normal(size=shape)
    x[:, 5] *= size
    return x.astype(np.float32)


def kinds(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Tensors for which different schemes are best."""
    quiet = rng.normal(size=(70, 64)) * np.exp(2 * rng.normal(size=(70, 1)))  # 70: two blocks of 32 and six tokens
    return {
        "gaussian": loud(rng, 1),
        "one loud channel": loud(rng, 50),
        "channels with means": (loud(rng, 1) + 9 * rng.normal(size=32)).astype(np.float32),
        "tokens of many sizes": quiet.astype(np.float32),
        "short": loud(rng, 3, (5, 32)),
        "whole numbers": rng.integers(-6, 7, (64, 32)).astype(np.float32),
        "zeros": np.zeros((33, 32), np.float32),
        "real keys": load_keys(10)[:96, 1],
        "real values": load_values(10)[:96, 1],
    }


def test_the_choice_is_that_of_an_exhaustive_search(rng: np.random.Generator) -> None:
    chosen = set()
    for kind, x in kinds(rng).items():
        found = candidates(x, PARTS)
        exact = sorted({cached.bits_per_element for cached in found.values()})
        errors = {name: float(np.mean(error_by_loop(x, cached.decoded))) for name, cached in found.items()}
        for budget in [*exact[::2], *(bits - 2.0**-20 for bits in exact[1::4]), exact[-1] + 1]:
            got = choose_scheme(x, budget)
            assert got in best_by_search(found, errors, budget), (kind, budget)
            chosen.add(got)
    assert len(chosen) >= 12, chosen


def test_of_equals_the_first_is_chosen() -> None:
    x = np.zeros((32, 32), np.float32)
    assert choose_scheme(x, 16.0) == "FP16"
    assert choose_scheme(x, 15.0) == "FP8, UE8M0 per 32"
    assert choose_scheme(np.ones((32, 32), np.float32), 4.25) == "MXFP4"


@settings(max_examples=25, deadline=None)  # forty candidates each: slow on a busy machine
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(0.1, 100))
def test_more_bits_never_make_it_worse(seed: int, size: float) -> None:
    x = loud(np.random.default_rng(seed), size, (40, 32))
    found = candidates(x, PARTS)
    errors = [
        channel_error(x, found[choose_scheme(x, budget)].decoded).mean() for budget in (3.0, 4.0, 4.5, 6.0, 9.0, 16.0)
    ]
    assert errors == sorted(errors, reverse=True), (seed, size)


@pytest.mark.parametrize("budget", [2.0, 0.0, -1.0, float("nan")])
def test_budgets_below_every_candidate_are_refused(budget: float, rng: np.random.Generator) -> None:
    x = loud(rng, 1, (32, 32))
    fewest = min(cached.bits_per_element for cached in candidates(x, PARTS).values())
    with pytest.raises(ValueError, match=f"budget_bits: expected at least {fewest:g} bits per element, got"):
        choose_scheme(x, budget)
    choose_scheme(x, fewest)


@pytest.mark.parametrize("width", [16, 24, 96])
def test_widths_that_not_every_candidate_can_store_are_refused(width: int) -> None:
    with pytest.raises(ValueError, match="x: expected a last axis"):
        choose_scheme(np.ones((32, width), np.float32), 8.0)


def test_a_value_that_is_not_finite_is_named() -> None:
    x = np.ones((32, 32), np.float32)
    x[3, 4] = np.nan
    with pytest.raises(ValueError, match=r"got nan at index \(3"):
        choose_scheme(x, 8.0)


def test_the_input_is_left_alone(rng: np.random.Generator) -> None:
    x = loud(rng, 9)
    before = x.copy()
    choose_scheme(x, 4.5)
    expect_values(x, before, given="the input after the call")
