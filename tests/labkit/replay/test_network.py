"""A cold run and single steps: against loops over tokens, and against each other."""

import itertools

import numpy as np
import pytest
from labkit.replay import LayerKind, Network, Rows, ToyNetwork, cache_of, decode_step, swa_forward
from labkit.replay.network import part, refuse_unfit

WINDOW, GLOBAL = LayerKind.WINDOW, LayerKind.GLOBAL
# Sums of at most 40 float64 terms in another order, through three layers: 40 · 2^-53 = 4e-15, stretched by up to 200.
ROUNDING = 1e-12


def turned(x: np.ndarray, position: int) -> np.ndarray:
    """RoPE with complex numbers: channel c is the real part, c + D/2 the imaginary part of one number."""
    half = len(x) // 2
    number = (x[:half] + 1j * x[half:]) * np.exp(1j * position * 1e4 ** (-np.arange(half) / half))
    return np.concatenate([number.real, number.imag])


def in_loops(network: ToyNetwork, tokens: np.ndarray) -> np.ndarray:
    """Return the output of the last layer, token by token and head by head."""
    hidden = [network.embedding[token] for token in tokens]
    for layer, kind in enumerate(network.kinds):
        after = []
        for t, own in enumerate(hidden):
            first = 0 if kind is GLOBAL else max(0, t - network.window + 1)
            added = np.zeros_like(own)
            for q, k, v, o in zip(*(matrix[layer] for matrix in matrices(network)), strict=True):
                logits = [turned(own @ q, t) @ turned(hidden[s] @ k, s) for s in range(first, t + 1)]
                weights = np.exp(np.array(logits) / np.sqrt(q.shape[1]))
                mean = sum(w * (hidden[s] @ v) for w, s in zip(weights, range(first, t + 1), strict=True))
                added = added + mean / weights.sum() @ o
            after.append(own + added)
        hidden = after
    return np.array(hidden)


def matrices(network: ToyNetwork) -> tuple[np.ndarray, ...]:
    return network.to_query, network.to_key, network.to_value, network.to_output


@pytest.mark.parametrize("kinds", [(WINDOW,), (GLOBAL,), (WINDOW, GLOBAL, WINDOW)])
@pytest.mark.parametrize("row_by_row", [False, True])
def test_a_cold_run_is_what_loops_compute(kinds, row_by_row: bool) -> None:
    for window, heads, n_tokens in itertools.product((1, 2, 5), (1, 3), (1, 4, 12)):
        network = ToyNetwork(window=window, seed=1, width=6, heads=heads, kinds=kinds, row_by_row=row_by_row)
        tokens = np.random.default_rng(0).integers(0, 64, n_tokens)
        run, expected = swa_forward(network, tokens), in_loops(network, tokens)
        assert np.allclose(run.hidden[-1], expected, rtol=ROUNDING, atol=ROUNDING)
        assert np.allclose(run.logits, expected @ network.to_logits, rtol=ROUNDING, atol=ROUNDING)
        assert np.array_equal(run.hidden[0], network.embedding[tokens])


@pytest.mark.parametrize("kinds", [(WINDOW,) * 3, (GLOBAL, WINDOW), (WINDOW, GLOBAL, WINDOW)])
@pytest.mark.parametrize("window", [1, 2, 6])
def test_a_step_from_the_cache_is_the_next_token_of_a_cold_run(kinds, window: int) -> None:
    network, tokens = ToyNetwork(window=window, kinds=kinds), np.random.default_rng(1).integers(0, 64, 15)
    run = swa_forward(network, tokens)
    for hit in range(15):
        cache = cache_of(run, network, hit)
        expected = [hit if kind is GLOBAL else min(hit, window - 1) for kind in kinds]
        assert [rows.keys.shape[1] for rows in cache] == [rows.values.shape[1] for rows in cache] == expected
        copies = [rows.keys.copy() for rows in cache]
        logits = decode_step(network, int(tokens[hit]), hit, cache)
        assert np.allclose(logits, run.logits[hit], rtol=ROUNDING, atol=ROUNDING)
        assert all(np.array_equal(rows.keys, copy) for rows, copy in zip(cache, copies, strict=True))


def test_rows_are_of_their_own_token_alone() -> None:
    """Else a replay could not take global rows as they are."""
    network, tokens = ToyNetwork(layers=2, row_by_row=True), np.arange(9)
    run = swa_forward(network, tokens)
    for layer, t in itertools.product(range(2), range(9)):
        alone = network.rows(layer, run.hidden[layer, t : t + 1], np.array([t]))
        assert np.array_equal(alone.keys, part(run.rows[layer], t, t + 1).keys)
        assert np.array_equal(alone.values, part(run.rows[layer], t, t + 1).values)


def test_networks_are_recognised_by_what_they_have() -> None:
    assert isinstance(ToyNetwork(), Network)
    assert not isinstance(object(), Network)


HYBRID = ToyNetwork(window=3, kinds=(WINDOW, GLOBAL))
TEXT = np.arange(6)
RUN = swa_forward(HYBRID, TEXT)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cache_of(RUN, HYBRID, 7), ValueError, "hit: expected 0 to 6, the tokens of the run, got 7"),
        (lambda: cache_of(RUN, HYBRID, -1), ValueError, "hit: expected 0 to 6, the tokens of the run, got -1"),
        (lambda: step(-1, cache_of(RUN, HYBRID, 0)), ValueError, "position: expected at least 0, got -1"),
        (lambda: step(6, cache_of(RUN, HYBRID, 5)), ValueError, "cache: expected 6 rows in layer 1, got 5"),
        (lambda: step(6, [RUN.rows[0], RUN.rows[1]]), ValueError, "cache: expected 2 rows in layer 0, got 6"),
        (lambda: step(5, cache_of(RUN, HYBRID, 5)[:1]), ValueError, "cache: expected rows for each of 2 layers, got 1"),
        (lambda: swa_forward(HYBRID, TEXT * 1.0), TypeError, "tokens: expected integers, got float64"),
        (lambda: swa_forward(HYBRID, TEXT - 1), ValueError, "tokens: expected 0 to 63, got -1"),
        (lambda: swa_forward(HYBRID, TEXT + 60), ValueError, "tokens: expected 0 to 63, got 64"),
        (lambda: fit(WINDOW, None), ValueError, "is_visible: expected shape (2, 4) in window layer 0, got None"),
        (lambda: fit(WINDOW, (4, 2)), ValueError, "is_visible: expected shape (2, 4) in window layer 0, got (4, 2)"),
        (lambda: fit(GLOBAL, (2, 4)), ValueError, "is_visible: expected None in global layer 0, got shape (2, 4)"),
        (
            lambda: fit(GLOBAL, None, rows=3),
            ValueError,
            "rows: expected all from position 0 to 3 in global layer 0, got 3 rows",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message


def step(position: int, cache: list[Rows]) -> np.ndarray:
    return decode_step(HYBRID, 0, position, cache)


def fit(kind: LayerKind, shape: tuple[int, int] | None, rows: int = 4) -> None:
    held = Rows(np.zeros((1, rows, 4)), np.zeros((1, rows, 4)))
    refuse_unfit(kind, 0, np.array([2, 3]), held, None if shape is None else np.ones(shape, bool))


def test_a_text_of_no_tokens_has_no_rows() -> None:
    run = swa_forward(HYBRID, TEXT[:0])
    assert run.hidden.shape == (3, 0, 16) and run.rows[0].keys.shape == (1, 0, 16)
