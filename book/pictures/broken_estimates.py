"""Caches whose errors are not what the estimate assumes, and real ones, compared with guarantee and measurement."""

from collections.abc import Callable, Iterator

import numpy as np
from fp4kv import dequantise, logit_error_bound, quantise_e2m1, weight_error_bound
from labkit import tensors
from labkit.formats import E2M1_MEAN_SQUARE_ERRORS, E2M1_VALUES, GROUP_LENGTH

from pictures.comparison import Comparison, compare, gaussian_cache, pooled

N_TOKENS, WIDTH, N_QUERIES, N_CACHES = 512, 64, 4, 25
SHARED = 0.99  # of the values' variance
LOUD_CHANNEL, LOUDNESS = 5, 30
DEGREES_OF_FREEDOM = 3  # Student's t: the fewest, among whole numbers, for which there is a variance
N_BEFORE = 448  # tokens before the 64 whose queries labkit has: every query sees them all

Cache = tuple[np.ndarray, np.ndarray, np.ndarray]


def gaussian(rng: np.random.Generator) -> Cache:
    """Return what the estimate assumes."""
    return gaussian_cache(N_TOKENS, WIDTH, N_QUERIES, rng)


def uniform(rng: np.random.Generator) -> Cache:
    """Return keys and values spread evenly, variance 1."""
    return elements(rng, lambda size: rng.uniform(-(3**0.5), 3**0.5, size))


def heavy_tails(rng: np.random.Generator) -> Cache:
    """Return keys and values with Student's t distribution, variance 1."""
    size = (DEGREES_OF_FREEDOM / (DEGREES_OF_FREEDOM - 2)) ** 0.5
    return elements(rng, lambda shape: rng.standard_t(DEGREES_OF_FREEDOM, shape) / size)


def whole_numbers(rng: np.random.Generator) -> Cache:
    """Return keys and values that are whole values of E2M1, which a scale of 1 keeps as they are."""
    wholes = E2M1_VALUES[E2M1_VALUES % 1 == 0]
    return elements(rng, lambda size: rng.choice(np.concatenate([wholes, -wholes[1:]]), size))


def one_loud_channel(rng: np.random.Generator) -> Cache:
    """Return Gaussian data with one channel of the keys thirty times as large."""
    q, keys, values = gaussian(rng)
    keys[:, LOUD_CHANNEL] *= LOUDNESS
    return q, keys, values


def shared_values(rng: np.random.Generator) -> Cache:
    """Return values that are nearly the same for every token, and Gaussian keys."""
    q, keys, values = gaussian(rng)
    return q, keys, (SHARED**0.5 * values[0] + (1 - SHARED) ** 0.5 * values).astype(np.float32)


def elements(rng: np.random.Generator, draw: Callable[[tuple[int, int]], np.ndarray]) -> Cache:
    """Return keys and values drawn one by one, and Gaussian queries."""
    keys, values = (np.asarray(draw((N_TOKENS, WIDTH)), np.float32) for _ in range(2))
    return rng.normal(size=(N_QUERIES, WIDTH)).astype(np.float32), keys, values


SYNTHETIC: dict[str, Callable[[np.random.Generator], Cache]] = {
    "independent Gaussian": gaussian,
    "uniform": uniform,
    "heavy tails (Student's t, 3 degrees)": heavy_tails,
    "whole numbers": whole_numbers,
    "one key channel × 30": one_loud_channel,
    "values 99 % shared": shared_values,
}


def excess_in_loud_channel() -> float:
    """Return how many times the mean square error of the loud channel its codes let one expect (seed 0)."""
    rng, expected, measured = np.random.default_rng(0), 0.0, 0.0
    for _ in range(N_CACHES):
        _, keys, _ = one_loud_channel(rng)
        packed = quantise_e2m1(keys)
        codes, scales = packed.codes[:, LOUD_CHANNEL] & 7, packed.scales[:, LOUD_CHANNEL // GROUP_LENGTH]
        expected += float((E2M1_MEAN_SQUARE_ERRORS[codes] * scales**2).sum())
        measured += float(((dequantise(packed) - keys)[:, LOUD_CHANNEL] ** 2).sum())
    return expected / measured


def of_synthetic() -> dict[str, Comparison]:
    """Return 100 queries to each kind of cache, each kind from seed 0."""
    table = {}
    for name, make in SYNTHETIC.items():
        rng = np.random.default_rng(0)
        table[name] = pooled([compare(*make(rng)) for _ in range(N_CACHES)])
    return table


def heads_of(layer: int, is_chosen: np.ndarray | slice = slice(None)) -> Iterator[Cache]:
    """Yield for each of nine heads its last 64 queries, and keys and values of the 448 tokens before, if chosen."""
    q, keys, values = tensors.load_queries(layer), tensors.load_keys(layer), tensors.load_values(layer)
    per_group = q.shape[1] // keys.shape[1]
    for head in range(q.shape[1]):
        yield q[:, head], *(np.ascontiguousarray(x[:N_BEFORE, head // per_group][is_chosen]) for x in (keys, values))


def of_layer(layer: int, is_chosen: np.ndarray | slice = slice(None)) -> Comparison:
    """Return the comparison for all queries of one layer."""
    return pooled([compare(*cache) for cache in heads_of(layer, is_chosen)])


def weight_bound(layer: int) -> float:
    """Return the median of what is guaranteed for the weights in one layer; 1 says nothing."""
    bounds = [weight_error_bound(logit_error_bound(q, quantise_e2m1(keys))) for q, keys, _ in heads_of(layer)]
    return float(np.median(bounds))


def first_of_each_token() -> np.ndarray:
    """Return which of the 448 tokens are the first of their kind."""
    is_first = np.zeros(N_BEFORE, bool)
    is_first[np.unique(tensors.load_tokens()[:N_BEFORE], return_index=True)[1]] = True
    return is_first


def of_real() -> dict[str, Comparison]:
    """Return every layer that labkit has, and the first one again with each token once."""
    first, *others = tensors.LAYERS
    return {
        f"real layer {first}": of_layer(first),
        f"real layer {first}, each token once": of_layer(first, first_of_each_token()),
        **{f"real layer {layer}": of_layer(layer) for layer in others},
    }
