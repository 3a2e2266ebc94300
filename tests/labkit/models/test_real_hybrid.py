"""Replay on a decoder with window and global layers: the staircase, the exact length, and what is left untouched."""

import importlib
import json
from types import ModuleType

import pytest
import torch
from labkit.models.decoder import Layout, run

LAYOUT = Layout(window=5, sinks=2, global_layers=frozenset({1}))
WINDOW_LAYERS = (0, 2, 3)
TOKENS, HIT = 60, 50
ROUNDING = 1e-12
"""Relative, for float64: 4 layers of sums of at most 400 terms, each rounded by 2^-53, leave less than 1e-13."""
VISIBLE = 1e-8
"""What one missing token leaves on these networks: far above rounding, far below the rows themselves."""


@pytest.fixture
def bench(project, monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(project / "bench"))
    return importlib.import_module("real_hybrid")


@pytest.fixture
def cold(random_decoder, random_tokens):
    decoder, tokens = random_decoder(1), random_tokens(2, TOKENS)
    return decoder, tokens, run(decoder, LAYOUT, tokens[:, :HIT])[1]


def row_errors(bench, cold, n: int, hit: int = HIT) -> dict[int, float]:
    decoder, tokens, state = cold
    stored = bench.kept(state, LAYOUT, hit)
    again = bench.replayed(decoder, LAYOUT, tokens, hit, n, stored)
    got, expected = (bench.window_rows(one, LAYOUT, WINDOW_LAYERS, hit) for one in (again, state))
    return {layer: bench.relative_error(got[layer], expected[layer]) for layer in WINDOW_LAYERS}


def test_exact_length_is_one_window_less_one_for_each_window_layer(bench, cold):
    assert bench.exact_length(cold[0], LAYOUT) == 3 * (5 - 1)
    assert bench.window_layers(cold[0], LAYOUT) == list(WINDOW_LAYERS)


@pytest.mark.parametrize("n", range(4, 14))
def test_rows_of_each_window_layer_are_exact_from_its_step_of_the_staircase_on(bench, cold, n):
    """The window layer with k of them below it needs (k + 1)(W − 1) tokens; one fewer shows."""
    for below, (layer, error) in enumerate(row_errors(bench, cold, n).items()):
        if n >= (below + 1) * (LAYOUT.window - 1):
            assert error <= ROUNDING, f"layer {layer}"
        else:
            assert error > VISIBLE, f"layer {layer}"


def test_exact_replay_gives_the_logits_of_the_cold_run(bench, cold):
    decoder, tokens, state = cold
    stored = bench.kept(state, LAYOUT, HIT)
    expected, _ = run(decoder, LAYOUT, tokens[:, HIT:], HIT, state)
    for n, is_exact in ((12, True), (11, False), (HIT, True), (HIT + 7, True)):
        again = bench.replayed(decoder, LAYOUT, tokens, HIT, n, stored)
        got, _ = run(decoder, LAYOUT, tokens[:, HIT:], HIT, again)
        assert (bench.relative_error(got, expected) <= ROUNDING) is is_exact


@pytest.mark.parametrize("n", [5, 12, 50])
def test_global_and_first_rows_are_those_stored_bit_for_bit(bench, cold, n):
    decoder, tokens, state = cold
    stored = bench.kept(state, LAYOUT, HIT)
    again = bench.replayed(decoder, LAYOUT, tokens, HIT, n, stored)
    assert torch.equal(again[1].positions, torch.arange(HIT))
    for layer, rows in enumerate(stored):
        assert torch.equal(again[layer].keys[:, :, : len(rows.positions)], rows.keys)
        assert torch.equal(again[layer].values[:, :, : len(rows.positions)], rows.values)


def test_nothing_of_a_window_is_stored_but_the_first_rows(bench, cold):
    stored = bench.kept(cold[2], LAYOUT, HIT)
    assert [len(rows.positions) for rows in stored] == [2, HIT, 2, 2]
    assert [len(rows.positions) for rows in bench.kept(cold[2], LAYOUT, 1)] == [1, 1, 1, 1]


def test_replay_reads_no_row_between_the_first_ones_and_its_start(bench, cold):
    """What lies there in the cold run's window rows does not matter: they are not in the state."""
    decoder, tokens, state = cold
    again = bench.replayed(decoder, LAYOUT, tokens, HIT, 5, bench.kept(state, LAYOUT, HIT))
    for layer in WINDOW_LAYERS:
        assert again[layer].positions.tolist() == [0, 1, *range(HIT - 5, HIT)]


@pytest.mark.parametrize("hit", [1, 2, 4, 5])
def test_hit_within_the_window_is_rebuilt_whole(bench, cold, hit):
    assert max(row_errors(bench, cold, LAYOUT.window, hit).values()) <= ROUNDING


def test_recorded_figures_are_of_this_hybrid(bench, project):
    recorded = json.loads((project / "book/recorded/real_replay.json").read_text())
    hybrid = recorded["hybrid"]
    assert hybrid["global layers"] == sorted(bench.GLOBAL_LAYERS)
    assert (hybrid["window"], hybrid["first tokens always visible"]) == (bench.WINDOW, bench.SINKS)
    assert hybrid["exact replay, tokens"] == (hybrid["layers"] - len(bench.GLOBAL_LAYERS)) * (bench.WINDOW - 1)
    assert recorded["continuation"]["replays"][-1]["replayed"] == hybrid["exact replay, tokens"]
    assert sum(place["answers"] for place in recorded["recall"]["runs"]["original"].values()) >= 300
    assert (
        max(recorded["checks"]["exact replay in float64"][part] for part in ("key rows, worst layer", "logits"))
        < ROUNDING
    )
