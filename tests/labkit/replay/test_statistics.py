"""What is recorded of a cold run: each number against its definition in loops, and nothing from which to run it."""

import numpy as np
import pytest
from labkit.replay import LayerKind, ToyNetwork, record_statistics, swa_forward
from labkit.replay.statistics import ReadableNetwork, diameters

WINDOW, GLOBAL = LayerKind.WINDOW, LayerKind.GLOBAL
ROUNDING = 1e-12  # sums of some 30 float64 terms, of numbers of about 1 to 10
NAMES = ("truncated_mass", "mean_distance", "value_diameter", "query_norm", "key_diameter", "weight_squares")


def of_token(network: ToyNetwork, run, layer: int, head: int, t: int, start: int) -> dict[str, float]:
    """The definitions of `LayerStatistics`, for one head and one token."""
    is_global = network.kinds[layer] is GLOBAL
    rows = network.reads(layer, run.hidden[layer], np.arange(len(run.hidden[layer])), run.rows[layer])
    seen = [s for s in range(t + 1) if is_global or s > t - network.window]
    missing = [s for s in seen if s < start and not is_global]
    kept = [s for s in seen if s not in missing]
    query, keys, outputs = rows.queries[head, t], rows.keys[head], rows.outputs[head]
    raw = {s: float(np.exp(query @ keys[s] / np.sqrt(len(query)))) for s in seen}

    def mean(tokens: list[int]) -> np.ndarray:
        return sum(raw[s] * outputs[s] for s in tokens) / sum(raw[s] for s in tokens)

    def widest(points: np.ndarray, tokens: list[int]) -> float:
        return max(float(np.linalg.norm(points[a] - points[b])) for a in tokens for b in tokens)

    kept_weights = np.array([raw[s] for s in kept]) / sum(raw[s] for s in kept)
    return {
        "truncated_mass": sum(raw[s] for s in missing) / sum(raw.values()),
        "mean_distance": float(np.linalg.norm(mean(missing) - mean(kept))) if missing else 0.0,
        "value_diameter": widest(outputs, seen),
        "query_norm": float(np.linalg.norm(query)),
        "key_diameter": widest(keys, kept),
        "weight_squares": float((kept_weights**2).sum()),
    }


@pytest.mark.parametrize("kinds", [(WINDOW, WINDOW), (GLOBAL, WINDOW, GLOBAL)])
@pytest.mark.parametrize(("window", "hit", "n"), [(4, 14, 5), (4, 14, 3), (1, 9, 4), (6, 5, 9), (3, 12, 12)])
def test_each_number_is_what_its_definition_says(kinds, window: int, hit: int, n: int) -> None:
    network = ToyNetwork(window=window, seed=2, width=6, heads=2, kinds=kinds)
    run = swa_forward(network, np.random.default_rng(0).permutation(64)[:16])
    statistics = record_statistics(network, run, hit, n)
    start = max(0, hit - n)
    assert statistics.window == window and len(statistics.layers) == len(kinds)
    for layer, found in enumerate(statistics.layers):
        assert found.head_width == 6 and found.norm is None and found.mlp is None
        for head in range(2):
            expected = [of_token(network, run, layer, head, t, start) for t in range(start, hit)]
            for name in NAMES:
                values = [numbers[name] for numbers in expected]
                assert np.allclose(getattr(found, name)[head], values, rtol=ROUNDING, atol=ROUNDING), name


def test_gains_are_the_largest_stretches_and_none_of_a_global_layers_rows() -> None:
    network = ToyNetwork(window=4, heads=2, kinds=(WINDOW, GLOBAL))
    run = swa_forward(network, np.arange(12))
    window, whole = record_statistics(network, run, 12, 4).layers
    for head in range(2):
        paths = network.to_value[0, head] @ network.to_output[0, head]
        directions = np.random.default_rng(0).normal(size=(4000, 16))
        directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
        stretched = np.linalg.norm(directions @ paths, axis=-1)
        assert stretched.max() <= window.value_gain[head]
        assert np.isclose(np.linalg.svd(paths)[1][0], window.value_gain[head], rtol=ROUNDING)
        # The mean of 4,000 squares whose spread is below their mean: 1/63 of it, three times over.
        assert np.isclose((stretched**2).mean(), window.value_rms_gain[head] ** 2, rtol=3 / 63)
        assert np.isclose(np.linalg.svd(network.to_query[0, head])[1][0], window.query_gain[head], rtol=ROUNDING)
        assert np.isclose(np.linalg.svd(network.to_key[0, head])[1][0], window.key_gain[head], rtol=ROUNDING)
    assert whole.query_gain.all()
    assert not whole.key_gain.any() and not whole.value_gain.any() and not whole.value_rms_gain.any()
    assert not whole.truncated_mass.any() and not whole.mean_distance.any()


def test_there_is_no_weight_and_no_token_in_it() -> None:
    """One number for each head and token, or for each head: not even the width can be told from the amount."""
    for width in (8, 32):
        network = ToyNetwork(layers=2, window=4, width=width, heads=2)
        for layer in record_statistics(network, swa_forward(network, np.arange(20)), 20, 5).layers:
            shapes = [np.shape(value) for value in layer if value is not None]
            assert shapes == [(2, 5)] * 6 + [(2,)] * 4 + [()]


def test_only_tokens_before_the_hit_count() -> None:
    network, tokens = ToyNetwork(layers=2, window=4, kinds=(WINDOW, GLOBAL), row_by_row=True), np.arange(20)
    short, long = (record_statistics(network, swa_forward(network, tokens[:n]), 12, 5) for n in (12, 20))
    for found, expected in zip(long.layers, short.layers, strict=True):
        assert all(np.allclose(getattr(found, n), getattr(expected, n), rtol=ROUNDING, atol=ROUNDING) for n in NAMES)


def test_diameters_are_those_of_all_pairs(rng: np.random.Generator) -> None:
    points = rng.normal(size=(2, 12, 3))
    first, last = np.array([2, 2, 5, 11]), np.array([2, 7, 9, 11])
    found = diameters(points, first, last)
    for head in range(2):
        for column, (start, stop) in enumerate(zip(first, last, strict=True)):
            some = points[head, start : stop + 1]
            assert np.isclose(found[head, column], max(np.linalg.norm(a - b) for a in some for b in some), rtol=1e-14)


def test_points_close_together_keep_their_distance() -> None:
    """Products of numbers near a million would lose differences of a ten thousandth."""
    points = np.array([[[1e6, 1e6], [1e6 + 2**-14, 1e6]]])
    assert diameters(points, np.array([0]), np.array([1]))[0, 0] == 2**-14


@pytest.mark.parametrize(
    ("hit", "n", "message"),
    [
        (0, 3, "hit: expected 1 to 9, the tokens of the run, got 0"),
        (10, 3, "hit: expected 1 to 9, the tokens of the run, got 10"),
        (9, 0, "replay_tokens: expected at least 1, got 0"),
        (9, -3, "replay_tokens: expected at least 1, got -3"),
    ],
)
def test_replays_that_cannot_be_are_refused(hit: int, n: int, message: str) -> None:
    network = ToyNetwork()
    with pytest.raises(ValueError, match=f"^{message}$"):
        record_statistics(network, swa_forward(network, np.arange(9)), hit, n)


def test_a_network_that_shows_its_heads_is_told_from_one_that_does_not() -> None:
    assert isinstance(ToyNetwork(), ReadableNetwork)
