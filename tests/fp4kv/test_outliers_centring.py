"""Keys less their centre: causal, exact enough to be undone, and invisible to softmax after RoPE."""

import math

import numpy as np
import pytest
from fp4kv import attend, attention_weights, centre_keys, dequantise, quantise_e2m1
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labkit.expect import expect_close, expect_values

KEYS = hnp.arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 8)), elements=st.floats(-1e4, 1e4, width=32))


@given(keys=KEYS, data=st.data())
def test_later_tokens_never_change_earlier_results(keys: np.ndarray, data: st.DataObject) -> None:
    n_calibration = data.draw(st.integers(1, len(keys)))
    n_known = data.draw(st.integers(n_calibration, len(keys)))
    other = keys.copy()
    other[n_known:] = data.draw(hnp.arrays(np.float32, other[n_known:].shape, elements=st.floats(-9, 9, width=32)))

    centred, centre = centre_keys(keys, n_calibration)
    centred_otherwise, centre_otherwise = centre_keys(other, n_calibration)

    assert np.array_equal(centred[:n_known], centred_otherwise[:n_known]), (keys, other)
    assert np.array_equal(centre, centre_otherwise), (keys, other)


@given(keys=KEYS, data=st.data())
def test_a_token_that_comes_is_stored_as_if_it_were_the_last(keys: np.ndarray, data: st.DataObject) -> None:
    n_calibration = data.draw(st.integers(1, len(keys)))
    centred, centre = centre_keys(keys, n_calibration)
    for n_known in range(n_calibration, len(keys) + 1):
        so_far, same = centre_keys(keys[:n_known], n_calibration)
        assert np.array_equal(so_far, centred[:n_known]) and np.array_equal(same, centre), keys


@given(keys=KEYS, data=st.data())
def test_the_centre_is_the_exact_mean_rounded_and_can_be_added_back(keys: np.ndarray, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(keys)))
    centred, centre = centre_keys(keys, n)
    exact = np.array([math.fsum(channel.astype(float)) / n for channel in keys[:n].T])
    size = np.abs(keys).max(axis=0)
    # float64 sums, then float32: half a unit, and a hair where the float64 sum lies on the other side of a tie
    assert (np.abs(centre - exact) <= np.abs(exact) * 2.0**-24 + n * size * 2.0**-53 + 2.0**-150).all(), keys
    assert np.array_equal(centred[:n], keys[:n]), keys
    # subtracted and added in float32: half a unit of a difference, which is at most twice the largest key
    restored = centred[n:].astype(np.float64) + centre
    assert (np.abs(restored - keys[n:]) <= 2 * size * 2.0**-24).all(), keys


def test_a_mean_in_float32_would_be_another() -> None:
    keys = np.float32([[2.0**24], [1], [1], [0]])  # in float32, 2^24 + 1 is 2^24
    expect_values(centre_keys(keys, 4)[1], np.float32([(2.0**24 + 2) / 4]), given=keys)


@pytest.mark.parametrize("n_calibration", [0, -1, 4])
def test_calibration_of_no_token_or_of_more_than_there_are_is_refused(n_calibration: int) -> None:
    with pytest.raises(ValueError, match="n_calibration: expected a number of tokens from 1 to 3, got"):
        centre_keys(np.ones((3, 2), np.float32), n_calibration)


def test_arguments_are_left_alone_and_never_returned(rng: np.random.Generator) -> None:
    keys = rng.normal(size=(6, 4)).astype(np.float32)
    before = keys.copy()
    for n in (1, 3, 6):
        assert not np.shares_memory(centre_keys(keys, n)[0], keys)
    expect_values(keys, before, given="the input after the calls")


def test_the_results_are_float32(rng: np.random.Generator) -> None:
    centred, centre = centre_keys(rng.normal(size=(6, 4)).astype(np.float32), 2)
    assert centred.dtype == centre.dtype == np.float32


def turned(x: np.ndarray, base: float = 100.0) -> np.ndarray:
    """RoPE: pairs of channels turned by an angle that grows with the position."""
    half = x.shape[-1] // 2
    angles = np.arange(len(x))[:, None] * base ** (-np.arange(half) / half)
    low, high = x[:, :half], x[:, half:]
    return np.concatenate(
        [low * np.cos(angles) - high * np.sin(angles), low * np.sin(angles) + high * np.cos(angles)], axis=-1
    )


def test_softmax_does_not_see_a_constant_that_is_added_after_rope_and_sees_one_before(
    rng: np.random.Generator,
) -> None:
    keys, q = rng.normal(size=(40, 16)), turned(rng.normal(size=(40, 16)))[-3:]
    shift = rng.normal(size=16) * 5
    weights = attention_weights(q, turned(keys))
    # a logit of at most 60 is off by 16 roundings, and its weight by as much relatively
    expect_close(attention_weights(q, turned(keys) + shift), weights, 60 * 32 * 2.0**-53, given="after RoPE")
    moved = np.abs(attention_weights(q, turned(keys + shift)) - weights).sum(axis=-1) / 2
    assert moved.min() > 0.1, "before RoPE"


def test_a_cache_that_is_centred_throughout_needs_its_centre_no_more(rng: np.random.Generator) -> None:
    # centred tokens alone: the common shift q · centre / √D changes no weight
    keys = (rng.normal(size=(80, 16)) + 8 * rng.normal(size=16)).astype(np.float32)
    q, values = rng.normal(size=(3, 16)).astype(np.float32), rng.normal(size=(48, 16)).astype(np.float32)
    centred = centre_keys(keys, 32)[0][32:]
    # logits are off by Σ|q| · 2^-24 · |key| / √D at most: the float32 of the difference
    moved = np.abs(q).sum(axis=1).max() * 2.0**-24 * 2 * np.abs(keys).max() / 4
    tolerance = 2 * moved * 2 * np.abs(values).max()
    expect_close(attend(q, centred, values), attend(q, keys[32:], values), tolerance, given="tokens 32 to 79")


def test_centring_helps_keys_with_a_mean_and_costs_others_little(rng: np.random.Generator) -> None:
    def error(keys: np.ndarray, is_centred: bool) -> float:
        stored, centre = centre_keys(keys, 32) if is_centred else (keys, np.zeros(64, np.float32))
        decoded = dequantise(quantise_e2m1(stored)).astype(np.float64)
        decoded[32:] += centre
        return float(np.linalg.norm(decoded - keys) / np.linalg.norm(keys - keys.mean(axis=0)))

    means = 8 * rng.normal(size=64)
    plain = rng.normal(size=(512, 64))
    with_means, without = (plain + means).astype(np.float32), plain.astype(np.float32)
    assert error(with_means, True) < error(with_means, False) / 2
    # the centre of 32 tokens is noise of variance 1/32: 1.6 % more to quantise
    assert error(without, True) < error(without, False) * 1.03
