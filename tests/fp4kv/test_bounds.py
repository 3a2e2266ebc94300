"""The guarantees on logits, weights and outputs: laws that hold for every cache, and cases that nearly reach them."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from fp4kv import (
    dequantise,
    error_radius,
    logit_error_bound,
    output_error_bound,
    quantise_e2m1,
    weight_error_bound,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labkit import tensors
from labkit.expect import expect_values
from labkit.formats import QuantisedE2M1
from scipy.special import softmax

SEEDS = st.integers(0, 2**32 - 1)
LOGITS = st.floats(-700, 700)
# What float64 may lose of a bound: a relative 1e-9 is 2^23 roundings of 2^-53; 1e-12 stands beside errors of 0.
RELATIVE, ABSOLUTE = 1e-9, 1e-12
NEAR_AN_END = 7 * 2.0**-23  # of its radius: one float32 beside the end of a cell, which is at most 7 radii from 0
ROUNDING = 1e-14  # of weights that add up to 1, from exponentials of numbers below 4


class Case(NamedTuple):
    """Queries, and the keys and values before they are quantised."""

    q: np.ndarray
    keys: np.ndarray
    values: np.ndarray


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def gaussian(rng: np.random.Generator, n_tokens: int) -> Case:
    return Case(normal(rng, 2, 32), normal(rng, n_tokens, 32), normal(rng, n_tokens, 16))


def two_points(rng: np.random.Generator, n_tokens: int) -> Case:
    """All the weight on two keys that nearly tie, the values of which are far apart."""
    q, keys, values = gaussian(rng, n_tokens)
    keys[:2] = q[0] / np.linalg.norm(q[0]) * np.float32(rng.uniform(10, 40))
    keys[-1] *= -1
    values[0] = -np.sign(values[-1]) * 6
    return Case(q, keys, values)


def equal_logits(rng: np.random.Generator, n_tokens: int) -> Case:
    q, keys, values = gaussian(rng, n_tokens)
    return Case(q * np.float32([[0], [1]]), np.tile(keys[:1], (n_tokens, 1)), values)


def one_hot(rng: np.random.Generator, n_tokens: int) -> Case:
    q, keys, values = gaussian(rng, n_tokens)
    keys[rng.integers(n_tokens)] = 20 * q[0]
    return Case(q, keys, values)


def huge_norms(rng: np.random.Generator, n_tokens: int) -> Case:
    q, keys, values = gaussian(rng, n_tokens)
    scale = np.float32(10) ** rng.uniform(1, 30)
    return Case(q * np.float32(scale), keys * 300, values * 300)


def a_sink(rng: np.random.Generator, n_tokens: int) -> Case:
    q, keys, values = gaussian(rng, n_tokens)
    keys[0] += 3 * q[0]
    values[0] *= np.float32(0.01)
    return Case(q, keys, values)


def subnormal_scales(rng: np.random.Generator, n_tokens: int) -> Case:
    q, keys, values = gaussian(rng, n_tokens)
    shrink = np.exp2(rng.uniform(-12, -5, (n_tokens, 1))).astype(np.float32)
    return Case(q * 300, keys * shrink, values * shrink)


def clipped_groups(rng: np.random.Generator, n_tokens: int) -> Case:
    q, keys, values = gaussian(rng, n_tokens)
    keys[rng.integers(n_tokens), :16] *= 3000
    q[0, :16] = 0  # the first query does not see them
    return Case(q * np.float32(0.01), keys, values)


def clipped_values(rng: np.random.Generator, n_tokens: int) -> Case:
    q, keys, values = gaussian(rng, n_tokens)
    values[rng.integers(n_tokens)] *= 3000
    return Case(q, keys, values)


def beside_edges(rng: np.random.Generator, n_tokens: int) -> Case:
    """Every element beside the far end of its cell: keys towards more weight on value 0, the values all one way."""
    q = normal(rng, 2, 32) * np.float32(10 ** rng.uniform(-3, 1))
    is_first = np.arange(n_tokens)[:, None] == 0
    towards = np.tile(np.sign(normal(rng, 16)), (n_tokens, 1))
    keys = at_far_ends(rng, np.where(is_first, 1, -1) * np.sign(q[0]), rng.integers(0, 8, (n_tokens, 32)))
    return Case(q, keys, at_far_ends(rng, towards, np.where(is_first, 6, 7)))


def at_far_ends(rng: np.random.Generator, sides: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Values beside the end of their code's cell that is furthest from where they decode to, on the given side."""
    signs = np.where(np.isin(codes, [4, 6]), sides, np.where(codes == 7, -sides, np.sign(normal(rng, *sides.shape))))
    low, high = (
        np.float32([0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]),
        np.float32([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6]),
    )
    outwards, inwards = np.nextafter(high, np.float32(0))[codes], np.nextafter(low, np.float32(9))[codes]
    x = np.where(codes == 0, high[0] * sides, np.where(signs == sides, outwards, inwards) * signs).astype(np.float32)
    x[:, ::16] = 6  # keeps the scale a power of two, and is exact
    return np.ldexp(x, rng.integers(-5, 5, (len(x), 1)))


FAMILIES = (
    gaussian,
    two_points,
    equal_logits,
    one_hot,
    huge_norms,
    a_sink,
    subnormal_scales,
    clipped_groups,
    clipped_values,
    beside_edges,
)
Family = Callable[[np.random.Generator, int], Case]


def exact_weights(q: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Softmax in the widest floating-point type, the products added one by one: independent of fp4kv."""
    logits = (q[:, None].astype(np.longdouble) * keys).sum(-1) / np.sqrt(np.longdouble(q.shape[-1]))
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def output_errors(case: Case, keys: QuantisedE2M1, values: QuantisedE2M1) -> np.ndarray:
    """How far the outputs of the packed cache truly are from those of the cache before, in the norm."""
    exact = exact_weights(case.q, case.keys) @ case.values.astype(np.longdouble)
    error = exact - exact_weights(case.q, dequantise(keys)) @ dequantise(values).astype(np.longdouble)
    return np.sqrt((error**2).sum(-1))


def assert_bounds(bounds: np.ndarray, errors: np.ndarray, what: object) -> None:
    """The bound is not below the error by more than rounding."""
    below = ~(bounds >= errors * (1 - RELATIVE) - ABSOLUTE)
    assert not below.any(), f"{what}: bound {bounds[below][0]!r} below the error {errors[below][0]!r}"


@pytest.mark.parametrize("family", FAMILIES)
@given(seed=SEEDS, n_tokens=st.sampled_from([1, 2, 3, 7, 40]))
def test_no_error_is_above_its_guarantee(family: Family, seed: int, n_tokens: int) -> None:
    case = family(np.random.default_rng(seed), n_tokens)
    keys, values = quantise_e2m1(case.keys), quantise_e2m1(case.values)

    logit_errors = np.abs(
        (case.q[:, None].astype(np.longdouble) * (case.keys - dequantise(keys).astype(float))).sum(-1)
    )
    logit_bounds = logit_error_bound(case.q, keys)
    assert_bounds(logit_bounds, logit_errors / np.sqrt(case.q.shape[-1]), "logits")

    moved = np.abs(exact_weights(case.q, case.keys) - exact_weights(case.q, dequantise(keys))).sum(-1) / 2
    assert_bounds(weight_error_bound(logit_bounds), moved, "weights")
    assert_bounds(output_error_bound(case.q, keys, values), output_errors(case, keys, values), "outputs")


@given(
    q=hnp.arrays(np.float32, (1, 16), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)),
    keys=hnp.arrays(np.float32, (3, 16), elements=st.floats(-3000, 3000, width=32)),
    values=hnp.arrays(np.float32, (3, 16), elements=st.floats(-3000, 3000, width=32)),
)
def test_no_error_of_any_numbers_is_above_its_guarantee(q: np.ndarray, keys: np.ndarray, values: np.ndarray) -> None:
    case, packed_keys, packed_values = Case(q, keys, values), quantise_e2m1(keys), quantise_e2m1(values)
    bounds = output_error_bound(q, packed_keys, packed_values)
    assert_bounds(bounds, output_errors(case, packed_keys, packed_values), case)


@pytest.mark.parametrize("layer", tensors.LAYERS)
@pytest.mark.parametrize("shrink", [1, 0.1, 0.003])
def test_no_error_of_real_tensors_is_above_its_guarantee(layer: int, shrink: float) -> None:
    keys, values, queries = tensors.load_keys(layer), tensors.load_values(layer), tensors.load_queries(layer)
    for head in range(3):
        case = Case(queries[::4, 3 * head] * np.float32(shrink), keys[:, head], values[:, head])
        packed = quantise_e2m1(case.keys), quantise_e2m1(case.values)
        assert_bounds(output_error_bound(case.q, *packed), output_errors(case, *packed), f"layer {layer}, head {head}")


OPTIMISTS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    # of ε (half the spread of the logits), p̂ · ‖r‖, the diameter with radii, and the one without
    "a quarter of the spread": lambda e, mean, wide, narrow: np.tanh(e / 4) * wide + mean,
    "no value term": lambda e, mean, wide, narrow: np.tanh(e / 2) * narrow,
    "no softmax step": lambda e, mean, wide, narrow: mean,
    "half of the radii": lambda e, mean, wide, narrow: np.tanh(e / 4) * wide + mean / 2,
}


@pytest.mark.parametrize("name", OPTIMISTS)
def test_an_optimistic_bound_is_found_out(name: str) -> None:
    found = 0
    for family, seed in itertools.product(FAMILIES, range(30)):
        case = family(np.random.default_rng(seed), 2)
        keys, values = quantise_e2m1(case.keys), quantise_e2m1(case.values)
        logit_bounds, radii = logit_error_bound(case.q, keys), np.linalg.norm(error_radius(values), axis=-1)
        narrow = np.linalg.norm(np.subtract(*dequantise(values).astype(float)))
        mean = exact_weights(case.q, dequantise(keys)) @ np.where(np.isinf(radii), 0, radii)
        bounds = OPTIMISTS[name](logit_bounds.sum(-1) / 2, mean, narrow + radii.sum(), narrow)
        found += int((bounds < output_errors(case, keys, values) * (1 - RELATIVE) - ABSOLUTE).sum())
    assert found >= 5


@given(seed=SEEDS)
def test_the_logit_bound_is_attained(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = normal(rng, 1, 32)
    q[:, ::16] = 0  # there, at_far_ends puts what is exact
    keys = at_far_ends(rng, np.tile(np.sign(q), (5, 1)), rng.integers(0, 8, (5, 32)))
    packed = quantise_e2m1(keys)
    errors = np.abs(q.astype(float) @ (keys - dequantise(packed).astype(float)).T) / np.sqrt(32)
    assert (errors >= logit_error_bound(q, packed) * (1 - NEAR_AN_END)).all()


@given(epsilon=st.floats(0, 3), n_tokens=st.integers(2, 5), share=st.floats(0, 1))
def test_the_weight_bound_is_attained_by_two_points(epsilon: float, n_tokens: int, share: float) -> None:
    # Weights in the ratio e^(2ε) : 1 swap when the two logits move apart by 4ε in all; the others weigh nothing.
    logits = np.r_[-epsilon, epsilon, np.full(n_tokens - 2, -800.0)]
    limits = np.r_[4 * epsilon * share, 4 * epsilon * (1 - share), np.zeros(n_tokens - 2)]
    shifts = limits * np.r_[1, -1, np.zeros(n_tokens - 2)]
    moved = np.abs(softmax(logits + shifts) - softmax(logits)).sum() / 2
    assert abs(weight_error_bound(limits[None])[0] - moved) <= ROUNDING


@given(data=st.data(), n_tokens=st.integers(1, 6))
def test_no_corner_of_the_limits_moves_weights_further(data: st.DataObject, n_tokens: int) -> None:
    logits = data.draw(hnp.arrays(np.float64, n_tokens, elements=LOGITS | st.floats(-3, 3)))
    limits = data.draw(hnp.arrays(np.float64, n_tokens, elements=st.floats(0, 5)))
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=n_tokens))) * limits
    moved = np.abs(softmax(logits + corners, axis=-1) - softmax(logits)).sum(-1) / 2
    assert_bounds(np.broadcast_to(weight_error_bound(limits[None]), moved.shape), moved, (logits, limits))


def test_weights_of_a_lone_or_unlimited_key() -> None:
    expect_values(weight_error_bound(np.array([[np.inf], [3.0]])), np.zeros(2), given="one key")
    expect_values(weight_error_bound(np.array([[np.inf, 0.0], [0.0, 0.0]])), np.array([1.0, 0.0]), given="two keys")


def test_logits_are_unbounded_only_where_q_meets_what_has_no_radius() -> None:
    x = np.zeros((2, 32), np.float32)
    x[0, 3] = 5000
    q = np.ones((2, 32), np.float32)
    q[1, 3] = 0
    bounds = logit_error_bound(q, quantise_e2m1(x))
    assert np.isinf(bounds).tolist() == [[True, False], [False, False]]
    assert np.isinf(output_error_bound(q, quantise_e2m1(np.ones((2, 16), np.float32)), quantise_e2m1(x))).all()


def test_the_output_bound_is_nearly_attained() -> None:
    # Key 0 was 5 and is 4, key 1 was 5 and is 6: ε = ½, and .231 of the weight has moved, of tanh(ε/2) = .245.
    # In 15 channels values were 5 and -5 and are 4 and -6: d = √15 · 10, r = √16, and the error is .231d + √15 = 12.8
    # of the bound .245(d + 2r) + r = 15.4. None reaches it: what a value adds to the diameter, its own error loses.
    keys, values = np.zeros((2, 2, 16), np.float32)
    beside_5 = np.nextafter(np.float32(5), np.float32([0, 9]))
    keys[:, 1], values[:, 1:] = beside_5, (beside_5 * np.float32([1, -1]))[:, None]
    keys[:, 0] = values[:, 0] = 6
    case = Case(np.eye(16, dtype=np.float32)[[1]] * 2, keys, values)
    packed = quantise_e2m1(keys), quantise_e2m1(values)
    assert weight_error_bound(logit_error_bound(case.q, packed[0]))[0] == pytest.approx(np.tanh(0.25))
    assert 0.8 < output_errors(case, *packed)[0] / output_error_bound(case.q, *packed)[0] < 1


@given(seed=SEEDS)
def test_the_value_term_is_attained(seed: int) -> None:
    # Without keys that matter, all values beside the same end of their cells: the error is the mean of their radii.
    rng = np.random.default_rng(seed)
    values = at_far_ends(rng, np.tile(np.sign(normal(rng, 16)), (5, 1)), rng.integers(0, 8, (5, 16)))
    values[:] = values[:1]  # one direction
    case = Case(np.zeros((1, 16), np.float32), values, values)
    packed = quantise_e2m1(values)
    radii = error_radius(packed)[0]
    reached = output_errors(case, packed, packed)[0] / output_error_bound(case.q, packed, packed)[0]
    assert reached >= np.linalg.norm(radii[1:]) / np.linalg.norm(radii) * (1 - NEAR_AN_END)  # element 0 is exact


def test_inputs_are_left_alone(rng: np.random.Generator) -> None:
    case = gaussian(rng, 5)
    keys, values = quantise_e2m1(case.keys), quantise_e2m1(case.values)
    arrays = (case.q, keys.codes, keys.scales, values.codes, values.scales)
    before = [array.copy() for array in arrays]
    output_error_bound(case.q, keys, values)
    for array, copy in zip(arrays, before, strict=True):
        expect_values(array, copy, given="an input after the call")
