"""Rebuilt rows against a cold run: which are exact, which are not, and what a replay reads."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from fp4kv import bounded_replay, exact_replay, exact_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from labkit.replay import LayerKind, Rows, Run, ToyNetwork, cache_of, decode_step, swa_forward
from labkit.replay.network import part

WINDOW, GLOBAL = LayerKind.WINDOW, LayerKind.GLOBAL
# Exact rows differ by the order of sums of up to 40 float64 numbers, each sum off by at most 40 · 2^-53 = 4e-15 of its
# terms; 1e-12 leaves four layers a factor of four each. Other rows are off by what the weights along one path through
# four layers multiply to: W^-4 = 2e-4 at W = 8. Over 25 seeds of each shape: at most 1.3e-15, and at least 3.4e-5.
EXACT, OFF = 1e-12, 1e-8


class Case(NamedTuple):
    """A network, a text longer than the hit, and a cold run of the text."""

    network: ToyNetwork
    tokens: np.ndarray
    run: Run

    def global_rows(self, hit: int) -> dict[int, Rows]:
        kinds = enumerate(self.network.kinds)
        return {layer: part(self.run.rows[layer], 0, hit) for layer, kind in kinds if kind is GLOBAL}

    def replay(self, hit: int, replay_tokens: int) -> list[Rows]:
        return bounded_replay(self.network, self.tokens, hit, replay_tokens, self.global_rows(hit))


def case(kinds: tuple[LayerKind, ...], window: int, n_tokens: int, seed: int = 0, row_by_row: bool = False) -> Case:
    """A case in which every row is missed: no token comes twice, and attention is even, at a third of the logits."""
    network = ToyNetwork(window=window, seed=seed, width=8, logit_scale=0.3, kinds=kinds, row_by_row=row_by_row)
    tokens = np.random.default_rng(seed).permutation(64)[:n_tokens]
    return Case(network, tokens, swa_forward(network, tokens))


def relative(found: np.ndarray, cold: np.ndarray) -> np.ndarray:
    """How far each token's row is off, over its length: one number for each position of (heads, positions, width)."""
    return np.asarray(np.linalg.norm(found - cold, axis=(0, 2)) / np.linalg.norm(cold, axis=(0, 2)))


def row_errors(found: Rows, cold: Rows) -> np.ndarray:
    return np.maximum(relative(found.keys, cold.keys), relative(found.values, cold.values))


def assert_caches_equal(found: list[Rows], cold: list[Rows]) -> None:
    for layer, (rows, expected) in enumerate(zip(found, cold, strict=True)):
        assert rows.keys.shape == expected.keys.shape, layer
        assert (row_errors(rows, expected) <= EXACT).all(), layer


def shapes() -> list[tuple[int, int, int]]:
    """L, W and H: among them one layer, a window of one, hits that are empty, within and beyond the window."""
    return list(itertools.product((1, 2, 3, 4), (1, 2, 3, 5), (0, 1, 2, 3, 4, 5, 9, 30)))


@pytest.mark.parametrize("seed", range(2))
def test_rows_are_exact_from_the_staircase_on_and_not_below_it(seed: int, replayed) -> None:
    for layers, window, hit in shapes():
        network, tokens, run = case((WINDOW,) * layers, window, hit + 1, seed)
        for n in (*range(min(8, hit + 2)), layers * (window - 1) - 1, layers * (window - 1), hit + 3):
            if n < 0:
                continue
            hidden = replayed(network, tokens, hit, n, run)
            start = max(0, hit - n)
            found = [network.rows(layer, hidden[layer], np.arange(start, hit)) for layer in range(layers)]
            errors = [row_errors(rows, part(cold, start, hit)) for rows, cold in zip(found, run.rows, strict=True)]
            is_exact = exact_rows(layers, window, hit, n)
            assert is_exact.shape == np.shape(errors)
            assert np.array_equal(np.array(errors) <= EXACT, is_exact), (layers, window, hit, n)
            assert (np.array(errors)[~is_exact] > OFF).all(), (layers, window, hit, n)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 40), st.integers(0, 45))
def test_the_staircase_is_where_the_formula_says(layers: int, window: int, hit: int, n: int) -> None:
    start = max(0, hit - n)
    for layer, line in enumerate(exact_rows(layers, window, hit, n)):
        first = start + layer * (window - 1) if start > 0 else 0
        assert line.tolist() == [position >= first for position in range(start, hit)]


HYBRIDS = [
    kinds for count in (1, 2, 3, 4) for kinds in itertools.product((WINDOW, GLOBAL), repeat=count) if WINDOW in kinds
]


@settings(max_examples=150)
@given(
    kinds=st.sampled_from(HYBRIDS),
    window=st.integers(1, 5),
    hit=st.integers(0, 30),
    extra=st.integers(0, 20),
    seed=st.integers(0, 99),
)
def test_in_a_hybrid_only_window_layers_count(kinds, window: int, hit: int, extra: int, seed: int) -> None:
    given_case, n = case(kinds, window, hit + 1, seed), min(hit, window - 1) + extra
    cache = given_case.replay(hit, n)
    cold = cache_of(given_case.run, given_case.network, hit)
    staircase = iter(exact_rows(kinds.count(WINDOW), window, hit, n))
    for kind, rows, expected in zip(kinds, cache, cold, strict=True):
        if kind is GLOBAL:
            assert np.array_equal(rows.keys, expected.keys) and np.array_equal(rows.values, expected.values)
            continue
        is_exact = next(staircase)[n - min(hit, window - 1) if n <= hit else hit - min(hit, window - 1) :]
        errors = row_errors(rows, expected)
        assert (errors[is_exact] <= EXACT).all()
        assert (errors[~is_exact] > OFF).all()


@pytest.mark.parametrize(
    "kinds", [(WINDOW,) * 4, (WINDOW,), (WINDOW, GLOBAL, WINDOW), (GLOBAL, WINDOW, WINDOW, GLOBAL)]
)
@pytest.mark.parametrize("window", [1, 2, 8])
def test_exact_replay_is_a_cold_run_and_one_token_fewer_is_not(kinds, window: int) -> None:
    layers = kinds.count(WINDOW)
    hit = layers * (window - 1) + 9
    network, tokens, run = chosen = case(kinds, window, hit + 1)
    cold, rows = cache_of(run, network, hit), chosen.global_rows(hit)

    rebuilt = exact_replay(network, tokens, hit, rows)
    assert_caches_equal(rebuilt, cold)
    logits = decode_step(network, int(tokens[hit]), hit, rebuilt)
    assert np.linalg.norm(logits - run.logits[hit]) <= EXACT * np.linalg.norm(run.logits[hit])

    if layers * (window - 1) > window - 1:
        fewer = chosen.replay(hit, layers * (window - 1) - 1)
        off = [row_errors(got, expected).max(initial=0) > OFF for got, expected in zip(fewer, cold, strict=True)]
        top = max(layer for layer, kind in enumerate(kinds) if kind is WINDOW)
        assert off == [layer == top for layer in range(len(kinds))]
        logits = decode_step(network, int(tokens[hit]), hit, fewer)
        assert np.linalg.norm(logits - run.logits[hit]) > OFF * np.linalg.norm(run.logits[hit])


@pytest.mark.parametrize(("layers", "window"), [(1, 4), (3, 4), (4, 8)])
def test_logits_of_the_last_cached_token_need_one_token_more(layers: int, window: int, replayed) -> None:
    n = layers * (window - 1)
    network, tokens, run = case((WINDOW,) * layers, window, n + 10)
    hit = len(tokens)
    cold = run.logits[hit - 1]
    for replay_tokens, is_exact in ((n, False), (n + 1, True)):
        logits = network.logits(replayed(network, tokens, hit, replay_tokens, run)[-1])[-1]
        error = np.linalg.norm(logits - cold) / np.linalg.norm(cold)
        assert error <= EXACT if is_exact else error > OFF, replay_tokens


@pytest.mark.parametrize("kinds", [(WINDOW,) * 3, (WINDOW, GLOBAL, WINDOW)])
def test_a_hit_within_the_window_is_a_cold_run(kinds) -> None:
    window = 6
    for hit in range(window + 1):
        chosen = case(kinds, window, hit + 1)
        assert_caches_equal(chosen.replay(hit, window), cache_of(chosen.run, chosen.network, hit))


@settings(max_examples=60)
@given(kinds=st.sampled_from(HYBRIDS), window=st.integers(1, 5), hit=st.integers(0, 25), seed=st.integers(0, 99))
def test_row_by_row_an_exact_replay_is_a_cold_run_bit_for_bit(kinds, window: int, hit: int, seed: int) -> None:
    network, tokens, run = chosen = case(kinds, window, hit + 1, seed, row_by_row=True)
    rebuilt = exact_replay(network, tokens, hit, chosen.global_rows(hit))
    for rows, cold in zip(rebuilt, cache_of(run, network, hit), strict=True):
        assert np.array_equal(rows.keys, cold.keys) and np.array_equal(rows.values, cold.values)
    logits = decode_step(network, int(tokens[hit]), hit, rebuilt)
    assert np.array_equal(logits, run.logits[hit])


def test_in_batches_an_exact_replay_differs_in_the_last_bits() -> None:
    """A product of matrices of other sizes is cut into other blocks and summed in another order."""
    hit = 40
    different = 0
    for seed in range(20):
        network, tokens, run = chosen = case((WINDOW,) * 4, 8, hit, seed)
        rebuilt = exact_replay(network, tokens, hit, chosen.global_rows(hit))
        pairs = zip(rebuilt, cache_of(run, network, hit), strict=True)
        different += any(not np.array_equal(rows.keys, cold.keys) for rows, cold in pairs)
    if not different:
        pytest.skip("this machine's matrix products sum a row in the same order in a batch of any size")
    assert different


class Counting(ToyNetwork):
    """A toy that notes which tokens are fed, and at which positions."""

    fed: int = 0
    first: int | None = None

    def embed(self, tokens: np.ndarray) -> np.ndarray:
        self.fed += len(tokens)
        return super().embed(tokens)

    def rows(self, layer: int, hidden: np.ndarray, positions: np.ndarray) -> Rows:
        self.first = int(positions.min(initial=10**9))
        return super().rows(layer, hidden, positions)


@pytest.mark.parametrize(
    ("hit", "fed", "start"),
    [(0, 0, 10**9), (64, 64, 0), (128, 128, 0), (129, 128, 1), (255, 128, 127), (1000, 128, 872)],
)
def test_bounded_replay_feeds_the_window_or_the_hit_where_that_is_shorter(hit: int, fed: int, start: int) -> None:
    network = Counting(layers=2, window=128, width=2)
    bounded_replay(network, np.arange(1000) % 64, hit, 128, {})
    assert (network.fed, network.first) == (fed, start)


def test_exact_replay_feeds_every_window_layer_a_window_less_one_token() -> None:
    for kinds, window in itertools.product(HYBRIDS, (1, 2, 5)):
        cold = case(kinds, window, 40)
        network = Counting(window=window, width=8, logit_scale=0.3, kinds=kinds)
        exact_replay(network, cold.tokens, 40, cold.global_rows(40))
        assert network.fed == kinds.count(WINDOW) * (window - 1)


def test_a_replay_reads_no_token_below_its_start_and_leaves_global_rows_alone() -> None:
    network, tokens, run = chosen = case((WINDOW, GLOBAL, WINDOW), 4, 30)
    rows = chosen.global_rows(30)
    copies = {layer: Rows(*map(np.copy, held)) for layer, held in rows.items()}
    for held in rows.values():
        for array in held:
            array.setflags(write=False)

    cache = bounded_replay(network, tokens, 30, 5, rows)
    elsewhere = np.where(np.arange(30) < 25, 63 - tokens, tokens)
    again = bounded_replay(network, elsewhere, 30, 5, rows)
    for found, other in zip(cache, again, strict=True):
        assert np.array_equal(found.keys, other.keys) and np.array_equal(found.values, other.values)
    assert np.array_equal(cache[1].keys, copies[1].keys) and np.array_equal(cache[1].values, copies[1].values)
    assert run.rows[1].keys.shape[1] == 30
