"""The hybrid in NumPy: the network that was trained, and what replay needs of it."""

import importlib.util
import json
from importlib.resources import as_file, files

import numpy as np
import pytest
import torch
from labkit.replay.attention import rotate
from labkit.replay.hybrid import (
    HYBRID_KINDS,
    INDEX_BLOCKS,
    WINDOW_ONLY,
    load_hybrid,
    random_hybrid,
    read_weights,
)
from labkit.replay.hybrid_index import IndexFormat
from labkit.replay.hybrid_task import VOCABULARY, records_task
from labkit.replay.network import LayerKind, cache_of, decode_step, swa_forward

MAX_BYTES = 2 * 10**6

FLOAT64_ROUNDING = 1e-10
"""Relative to the largest logit. Some thousand roundings of 2^-53 in a row, an error multiplied by at most a few in
each layer's norm: 1e-12 is what is seen; a wrong term, an angle or a weight would be off by 1e-3 or more."""

FLOAT32_ROUNDING = 1e-4
"""The same with 2^-24, half a thousand million times as much as 2^-53."""


@pytest.fixture(scope="module")
def trained(project):
    """The trained network in PyTorch, in float64."""
    path = project / "tools" / "train_hybrid" / "model.py"
    spec = importlib.util.spec_from_file_location("train_hybrid_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    header, weights = read_weights()
    model = module.Hybrid(module.Config(**header["config"]))
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    return model.double()


@pytest.fixture(scope="module")
def task():
    return records_task(seed=7, tokens=256, records=40)


def recall(network, tokens, records, seeds):
    tasks = [records_task(seed, tokens, records) for seed in seeds]
    chosen = [swa_forward(network, task.tokens).logits[task.questions].argmax(axis=-1) for task in tasks]
    return np.mean([picked == task.answers for picked, task in zip(chosen, tasks, strict=True)])


def test_weights_are_small_and_say_how_they_were_made():
    with as_file(files("labkit") / "data" / "hybrid.npz") as path:
        assert path.stat().st_size < MAX_BYTES
    header, weights = read_weights()
    assert {"config", "seed", "text", "curriculum", "versions", "date", "reached"} <= header.keys()
    assert all(np.isfinite(array).all() for array in weights.values())
    ends, norms, shifts = 2 * 832 * 128, 9 * 128, 2 * 2
    layers = 4 * (2 * 128 * 128 + 2 * 128 * 64 + 2 * 128 * 256)
    assert sum(array.size for array in weights.values()) == ends + layers + norms + shifts


def test_recorded_figures_are_of_these_weights(project):
    recorded = json.loads((project / "book" / "recorded" / "hybrid.json").read_text(encoding="utf-8"))
    header, _ = read_weights()
    assert recorded["made"]["weights"] == {name: header[name] for name in recorded["made"]["weights"]}
    assert recorded["made"]["index blocks"] == INDEX_BLOCKS


@pytest.mark.parametrize(("kind", "tolerance"), [(torch.float64, FLOAT64_ROUNDING), (torch.float32, FLOAT32_ROUNDING)])
def test_numpy_computes_what_pytorch_trained(trained, task, kind, tolerance):
    with torch.no_grad():
        expected = trained.to(kind)(torch.from_numpy(task.tokens)[None])[0].double().numpy()
    got = swa_forward(load_hybrid(index=None), task.tokens).logits
    assert np.abs(got - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize(("tokens", "records", "least"), [(512, 32, 0.99), (512, 128, 0.98)])
def test_records_are_recalled(tokens, records, least):
    assert recall(load_hybrid(index=None), tokens, records, range(4)) >= least


def test_index_costs_at_most_a_point_of_recall():
    dense, indexed = (recall(load_hybrid(index), 512, 128, range(4)) for index in (None, IndexFormat.E2M1))
    assert indexed >= dense - 0.01


def test_index_reads_a_part_of_the_rows():
    assert 8 * (INDEX_BLOCKS + 1) * 3 < 512


@pytest.mark.parametrize("index", [None, *IndexFormat])
def test_decoding_after_a_hit_goes_on_where_the_cold_run_is(task, index):
    network, hit = load_hybrid(index), 101
    run = swa_forward(network, task.tokens)
    logits = decode_step(network, int(task.tokens[hit]), hit, cache_of(run, network, hit))
    assert np.abs(logits - run.logits[hit]).max() <= FLOAT64_ROUNDING * np.abs(run.logits[hit]).max()


@pytest.mark.parametrize(("replayed", "is_exact"), [(62, True), (61, False)])
def test_twice_the_window_less_one_restores_both_window_layers(task, replayed, is_exact):
    network, hit = load_hybrid(), 150
    run = swa_forward(network, task.tokens[:hit])
    rebuilt = replay_by_hand(network, task.tokens[:hit], run, hit - replayed)
    last = slice(-(network.window - 1), None)
    off = np.abs(rebuilt.keys[:, last] - run.rows[2].keys[:, last]).max()
    assert (off <= FLOAT64_ROUNDING * np.abs(run.rows[2].keys).max()) == is_exact


def replay_by_hand(network, tokens, run, start):
    """Return the rows of layer 2 after feeding the tokens from `start` on; global layers read the cold run's rows."""
    positions = np.arange(start, len(tokens))
    age = positions[:, None] - positions
    hidden = network.embed(tokens[start:])
    for layer in range(2):
        is_window = network.kinds[layer] is LayerKind.WINDOW
        rows = network.rows(layer, hidden, positions) if is_window else run.rows[layer]
        in_window = (age >= 0) & (age < network.window)
        hidden = network.attend(layer, hidden, positions, rows, in_window if is_window else None)
    return network.rows(2, hidden, positions)


@pytest.mark.parametrize("index", [None, IndexFormat.E2M1])
def test_later_tokens_change_nothing(task, index):
    network, changed = load_hybrid(index), task.tokens.copy()
    changed[128:] = (changed[128:] + 1) % VOCABULARY
    before, after = (swa_forward(network, tokens).logits[:128] for tokens in (task.tokens, changed))
    assert np.abs(before - after).max() <= FLOAT64_ROUNDING * np.abs(before).max()


def test_index_that_may_read_every_block_is_none(task):
    dense, indexed = (
        swa_forward(network, task.tokens).logits for network in (load_hybrid(None), load_hybrid(blocks=256 // 8))
    )
    assert np.abs(dense - indexed).max() <= FLOAT64_ROUNDING * np.abs(dense).max()


@pytest.mark.parametrize("kinds", [HYBRID_KINDS, WINDOW_ONLY])
def test_random_network_comes_from_its_seed(task, kinds):
    first, again, other = (swa_forward(random_hybrid(seed, kinds=kinds), task.tokens).logits for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert np.abs(first - other).max() > 0.1


def test_rotations_add(rng):
    x = rng.normal(size=(2, 5, 32))
    once = rotate(rotate(x, np.arange(5), 1e4), np.array([1]), 1e4)
    assert np.abs(once - rotate(x, np.arange(1, 6), 1e4)).max() < 1e-13  # a turn more, rounded twice


def test_window_layer_wants_to_know_what_is_visible():
    network = load_hybrid()
    hidden, at = network.embed(np.array([65])), np.array([0])
    with pytest.raises(ValueError, match=r"is_visible: expected shape \(1, 1\) in window layer 2, got None"):
        network.attend(2, hidden, at, network.rows(2, hidden, at))


def test_global_layer_wants_every_row_and_no_mask():
    network = load_hybrid()
    hidden, at = network.embed(np.array([65])), np.array([9])
    rows = network.rows(1, hidden, at)
    with pytest.raises(ValueError, match="rows: expected all from position 0 to 9 in global layer 1, got 1 rows"):
        network.attend(1, hidden, at, rows)
    with pytest.raises(ValueError, match=r"is_visible: expected None in global layer 1, got shape \(1, 1\)"):
        network.attend(1, hidden, np.array([0]), rows, np.ones((1, 1), bool))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"blocks": -1}, "blocks: expected at least 0, got -1"),
        ({"kinds": (LayerKind.WINDOW,)}, "kinds: expected 4, one for each layer, got 1"),
    ],
)
def test_shapes_that_no_network_has_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        load_hybrid(**wrong)


@pytest.mark.parametrize("wrong", [-1, VOCABULARY])
def test_tokens_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match=f"tokens: expected 0 to 831, got {wrong}"):
        load_hybrid().embed(np.array([0, wrong]))


def test_tokens_that_are_no_integers_are_refused():
    with pytest.raises(TypeError):
        load_hybrid().embed(np.array([1.0]))
