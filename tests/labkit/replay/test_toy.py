"""The toy: its weights come from the seed, row by row it is the same network, and RoPE turns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.replay import LayerKind, ToyNetwork, swa_forward
from labkit.replay.attention import rotate

TOKENS = np.random.default_rng(0).integers(0, 64, 20)


def test_a_seed_gives_one_network_and_another_seed_another() -> None:
    runs = [swa_forward(ToyNetwork(seed=seed), TOKENS).logits for seed in (3, 3, 4)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.allclose(runs[0], runs[2], rtol=0, atol=0.1)


def test_row_by_row_is_the_same_network_in_another_order_of_sums() -> None:
    kinds = (LayerKind.WINDOW, LayerKind.GLOBAL, LayerKind.WINDOW)
    batched, single = (
        swa_forward(ToyNetwork(window=5, kinds=kinds, heads=2, row_by_row=is_single), TOKENS)
        for is_single in (False, True)
    )
    # Sums of up to 20 terms, off by 20 · 2^-53 = 2e-15, stretched up to a hundred times by three layers.
    assert np.allclose(batched.hidden, single.hidden, rtol=1e-12, atol=1e-12)


def test_row_by_row_a_row_does_not_depend_on_what_else_is_fed() -> None:
    network = ToyNetwork(layers=1, window=4, row_by_row=True)
    run = swa_forward(network, TOKENS)
    for start in range(17):
        positions = np.arange(start, 20)
        age = positions[:, None] - positions
        hidden = network.embed(TOKENS[start:])
        rows = network.rows(0, hidden, positions)
        output = network.attend(0, hidden, positions, rows, (age >= 0) & (age < 4))
        assert np.array_equal(output[3 if start else 0 :], run.hidden[1, start + (3 if start else 0) :])


def test_scales_scale_what_attention_adds_and_how_sharp_it_is() -> None:
    added = [
        np.linalg.norm(swa_forward(ToyNetwork(1, 8, output_scale=scale), TOKENS).hidden[1] - ToyNetwork().embed(TOKENS))
        for scale in (0.1, 1.0)
    ]
    assert np.isclose(added[1], 10 * added[0], rtol=1e-12)
    even, sharp = (swa_forward(ToyNetwork(1, 8, logit_scale=scale), TOKENS).hidden[1] for scale in (0.0, 100.0))
    values = ToyNetwork(1, 8).rows(0, ToyNetwork().embed(TOKENS), np.arange(20)).values[0]
    to_output = ToyNetwork(1, 8).to_output[0, 0]
    embedded = ToyNetwork().embed(TOKENS)
    assert np.allclose(even[-1] - embedded[-1], values[-8:].mean(axis=0) @ to_output, rtol=1e-12, atol=1e-12)
    nearest = np.linalg.norm(sharp[-1] - embedded[-1] - values[-8:] @ to_output, axis=-1)
    assert nearest.min() < 1e-3 * np.linalg.norm(values[-8:] @ to_output, axis=-1).min()


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
def test_rope_turns_so_that_only_distance_counts(query: int, key: int, shift: int) -> None:
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 1, 1, 8))

    def product(at_query: int, at_key: int) -> float:
        return float((rotate(q, np.array([at_query])) * rotate(k, np.array([at_key]))).sum())

    assert np.isclose(product(query, key), product(query + shift, key + shift), rtol=0, atol=1e-11)
    assert np.isclose(np.linalg.norm(rotate(q, np.array([query]))), np.linalg.norm(q), rtol=1e-14)
    assert np.array_equal(rotate(q, np.array([0])), q)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 0}, "layers: expected a whole number from 1 on, got 0"),
        ({"kinds": ()}, "layers: expected a whole number from 1 on, got 0"),
        ({"window": 0}, "window: expected a whole number from 1 on, got 0"),
        ({"window": 2.5}, "window: expected a whole number from 1 on, got 2.5"),
        ({"heads": 0}, "heads: expected a whole number from 1 on, got 0"),
        ({"width": 0}, "width: expected a whole number from 1 on, got 0"),
        ({"width": 5}, "width: expected an even number, got 5"),
    ],
)
def test_networks_that_cannot_be_are_refused(settings, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        ToyNetwork(**settings)
