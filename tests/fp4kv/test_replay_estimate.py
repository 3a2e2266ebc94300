"""The estimate of a replay's error: where it is good, where it breaks, and that both formulas are what they say."""

import math

import numpy as np
import pytest
from fp4kv import predict_replay_error, replay_error_bound
from hypothesis import given
from hypothesis import strategies as st
from labkit.replay import LayerKind, LayerStatistics, ReplayStatistics, ToyNetwork, record_statistics, swa_forward
from labkit.replay.statistics import Mlp, Norm

WINDOW, GLOBAL = LayerKind.WINDOW, LayerKind.GLOBAL
NETWORKS = 20
FACTOR = 2.0  # how far the pooled estimate may be off, up or down; at n = W it is off by at most 1.1 here
ROUNDING = 1e-12  # relative, of formulas with some ten operations a layer


def ratios(replayed, windows: int, layers: int = 4, window: int = 8, **settings) -> np.ndarray:
    """Estimate over measured error of each layer's output, both the RMS over networks and the last W - 1 tokens."""
    squares = []
    for seed in range(NETWORKS):
        network = ToyNetwork(layers, window, seed, **settings)
        n_layers, n = len(network.kinds), windows * window
        tokens = np.random.default_rng(seed).integers(0, 64, (n_layers + 1) * window + n)
        run = swa_forward(network, tokens)
        off = replayed(network, tokens, len(tokens), n, run) - run.hidden[:, -n:]
        estimate = predict_replay_error(record_statistics(network, run, len(tokens), n))
        last = slice(1 - window, None)
        squares.append([(estimate[1:, last] ** 2).mean(-1), (off[1:, last] ** 2).sum(-1).mean(-1)])
    estimated, measured = np.sqrt(np.mean(squares, axis=0))
    return np.divide(estimated, measured, out=np.full(n_layers, np.nan), where=measured > 0)  # 0: rows are exact


@pytest.mark.parametrize(
    "settings",
    [
        {"output_scale": 0.05},
        {"output_scale": 0.1},
        {"output_scale": 0.3},
        {"output_scale": 0.3, "window": 4},
        {"output_scale": 0.3, "window": 16},
        {"output_scale": 0.3, "heads": 4},
        {"output_scale": 0.3, "logit_scale": 4},
        {"output_scale": 0.3, "kinds": (WINDOW, GLOBAL, WINDOW, GLOBAL)},
        {"output_scale": 0.3, "layers": 12},
    ],
    ids=lambda settings: ",".join(settings),
)
def test_on_damped_networks_the_estimate_is_within_a_factor_of_two(settings, replayed) -> None:
    found = ratios(replayed, windows=1, **settings)
    assert ((found > 1 / FACTOR) & (found < FACTOR)).all(), found


@pytest.mark.parametrize("seed", range(3))
def test_the_estimate_of_one_head_is_the_error_in_the_first_layer(seed: int, replayed) -> None:
    network, tokens = ToyNetwork(3, 4, seed), np.random.default_rng(seed).permutation(64)[:30]
    run = swa_forward(network, tokens)
    off = replayed(network, tokens, 30, 4, run) - run.hidden[:, -4:]
    estimate = predict_replay_error(record_statistics(network, run, 30, 4))
    assert np.allclose(estimate[1], np.linalg.norm(off[1], axis=-1), rtol=1e-12, atol=1e-13)


def test_longer_replays_break_the_estimate(replayed) -> None:
    """Beyond n = W the errors of a window are those of its oldest tokens, and of one kind: far too low."""
    found = [ratios(replayed, windows, window=16, output_scale=0.3)[-1] for windows in (1, 2, 3)]
    assert found[0] > 0.9 and 0.4 < found[1] < 0.7 and 0.2 < found[2] < 0.4, found


def test_deep_undamped_networks_break_the_estimate(replayed) -> None:
    """Errors that grow from layer to layer are not independent: first too low, then too high."""
    found = ratios(replayed, windows=1, layers=40, output_scale=1.0)
    assert found[2:5].max() < 0.9 and found[-10:].min() > 1.3, found


def random_statistics(rng: np.random.Generator) -> ReplayStatistics:
    """Numbers of the right signs, shapes and order, of no network."""
    heads, n = int(rng.integers(1, 4)), int(rng.integers(1, 7))
    layers = []
    for _ in range(rng.integers(1, 5)):
        by_token, gains = np.abs(rng.normal(size=(6, heads, n))), np.abs(rng.normal(size=(4, heads)))
        by_token[0] = rng.uniform(size=(heads, n))
        norms = [Norm(float(rng.uniform(0, 2)), rng.uniform(0.1, 3, n)) for _ in range(2)]
        extra = (norms[0], Mlp(norms[1], float(rng.uniform(0, 2)))) if rng.random() < 0.5 else (None, None)
        layers.append(LayerStatistics(*by_token, *gains, int(rng.integers(1, 9)), *extra))
    return ReplayStatistics(int(rng.integers(1, 5)), tuple(layers))


def step_of_norm(norm: Norm | None, error: float, token: int) -> float:
    if norm is None:
        return error
    length = float(norm.lengths[token])
    if error >= length:
        return 2 * norm.gain
    cosine = math.sqrt(1 - (error / length) ** 2)
    return norm.gain * math.sqrt(2 - 2 * cosine)  # the chord of the angle, from its cosine


def bound_in_loops(statistics: ReplayStatistics) -> np.ndarray:
    n = statistics.layers[0].truncated_mass.shape[1]
    lines = [[0.0] * n]
    for layer in statistics.layers:
        line = []
        for t in range(n):
            inputs = [step_of_norm(layer.norm, lines[-1][s], s) for s in range(n)]
            reach = max(inputs[s] for s in range(n) if 0 <= t - s < statistics.window)
            total = lines[-1][t]
            for h in range(len(layer.query_gain)):
                query, key = layer.query_gain[h] * inputs[t], layer.key_gain[h] * reach
                spread = layer.key_diameter[h, t] * query + 2 * (layer.query_norm[h, t] + query) * key
                step = math.tanh(spread / (4 * math.sqrt(layer.head_width))) * layer.value_diameter[h, t]
                moved = layer.truncated_mass[h, t] * layer.mean_distance[h, t] + step
                total += min(moved, layer.value_diameter[h, t]) + layer.value_gain[h] * reach
            mlp = 0.0 if layer.mlp is None else layer.mlp.gain * step_of_norm(layer.mlp.norm, total, t)
            line.append(total + mlp)
        lines.append(line)
    return np.array(lines)


def estimate_in_loops(statistics: ReplayStatistics) -> np.ndarray:
    n = statistics.layers[0].truncated_mass.shape[1]
    lines = [[0.0] * n]
    for layer in statistics.layers:
        line = []
        for t in range(n):
            seen = [lines[-1][s] for s in range(n) if 0 <= t - s < statistics.window]
            square = lines[-1][t] ** 2
            for h in range(len(layer.query_gain)):
                square += (layer.truncated_mass[h, t] * layer.mean_distance[h, t]) ** 2
                mean = sum(error**2 for error in seen) / len(seen)
                square += layer.value_rms_gain[h] ** 2 * layer.weight_squares[h, t] * mean
            line.append(math.sqrt(square))
        lines.append(line)
    return np.array(lines)


@given(seed=st.integers(0, 2**32 - 1))
def test_both_are_the_formulas_of_their_docstrings(seed: int) -> None:
    statistics = random_statistics(np.random.default_rng(seed))
    # The chord from the cosine loses half the digits of a small angle: 1e-8 of its square root.
    assert np.allclose(replay_error_bound(statistics), bound_in_loops(statistics), rtol=1e-7, atol=1e-7)
    assert np.allclose(predict_replay_error(statistics), estimate_in_loops(statistics), rtol=ROUNDING, atol=0)
