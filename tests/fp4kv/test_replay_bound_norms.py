"""The guarantee behind RMSNorm and an MLP: the step of a norm, networks made for it, and the trained hybrid."""

from collections.abc import Callable

import numpy as np
import pytest
from fp4kv import replay_error_bound
from hypothesis import given, settings
from hypothesis import strategies as st
from labkit.replay import ReplayStatistics, Rows, Run, ToyNetwork, record_statistics, swa_forward
from labkit.replay.hybrid import WINDOW_ONLY, load_hybrid, random_hybrid
from labkit.replay.hybrid_reads import SILU_SLOPE
from labkit.replay.hybrid_task import records_task
from labkit.replay.statistics import Mlp, Norm, Reads

EPSILON = 1e-6
# 200 roundings of 2^-53 in a sum, of vectors up to 100 long, are 2e-12; norms and layers stretch that up to 10^3 times.
# Errors that are no rounding are above 1e-3.
ROUNDING = 1e-8


class Normed(ToyNetwork):
    """A toy with RMSNorm in front of attention and of an MLP of one width, both with weights."""

    def __init__(self, layers: int, window: int, seed: int, **settings: float) -> None:
        super().__init__(layers, window, seed, **settings)  # type: ignore[arg-type]
        rng, width = np.random.default_rng(seed + 1), len(self.to_logits)
        self.norm_weights = rng.uniform(0.5, 1.5, (layers, 2, width))
        self.up, self.down = rng.normal(size=(2, layers, width, width)) / np.sqrt(width)

    def normed(self, layer: int, part: int, hidden: np.ndarray) -> np.ndarray:
        length = np.sqrt(np.mean(hidden**2, axis=-1, keepdims=True) + EPSILON)
        return np.asarray(hidden / length * self.norm_weights[layer, part])

    def rows(self, layer: int, hidden: np.ndarray, positions: np.ndarray) -> Rows:
        return super().rows(layer, self.normed(layer, 0, hidden), positions)

    def attend(self, layer, hidden, positions, rows, is_visible=None) -> np.ndarray:
        after = self.after_attention(layer, hidden, positions, rows, is_visible)
        up = self.normed(layer, 1, after) @ self.up[layer]
        return np.asarray(after + up / (1 + np.exp(-up)) @ self.down[layer])

    def after_attention(self, layer, hidden, positions, rows, is_visible) -> np.ndarray:
        x = self.normed(layer, 0, hidden)
        return np.asarray(hidden + (super().attend(layer, x, positions, rows, is_visible) - x))

    def reads(self, layer: int, hidden: np.ndarray, positions: np.ndarray, rows: Rows) -> Reads:
        age = positions[:, None] - positions
        after = self.after_attention(layer, hidden, positions, rows, (age >= 0) & (age < self.window))
        gain = SILU_SLOPE * np.linalg.norm(self.up[layer], 2) * np.linalg.norm(self.down[layer], 2)
        reads = super().reads(layer, self.normed(layer, 0, hidden), positions, rows)
        return reads._replace(norm=self.norm(layer, 0, hidden), mlp=Mlp(self.norm(layer, 1, after), float(gain)))

    def norm(self, layer: int, part: int, hidden: np.ndarray) -> Norm:
        width = hidden.shape[-1]
        gain = np.sqrt(width) * np.abs(self.norm_weights[layer, part]).max()
        return Norm(float(gain), np.sqrt((hidden**2).sum(axis=-1) + width * EPSILON))


def random_normed(rng: np.random.Generator) -> Normed:
    scales = {"output_scale": float(rng.uniform(0.05, 3)), "logit_scale": float(rng.uniform(0.1, 2))}
    seed, heads = int(rng.integers(2**31)), int(rng.integers(1, 3))
    return Normed(int(rng.integers(1, 5)), int(rng.integers(1, 6)), seed, width=8, heads=heads, **scales)


def short_vectors(rng: np.random.Generator) -> Normed:
    """Hidden vectors so short that an error can turn them round."""
    network = random_normed(rng)
    network.embedding *= rng.uniform(0.01, 1)
    return network


def blank() -> Normed:
    """A network of two layers that do nothing; every token is long in channel 0, where all norms look."""
    network = Normed(layers=2, window=3, seed=0)
    for weight in (network.embedding, network.to_query, network.to_key, network.to_value, network.to_output):
        weight[:] = 0
    network.up[:], network.down[:], network.norm_weights[:] = 0, 0, 1
    network.embedding[:, 0] = 10
    # Layer 0 copies channel 2 to 1: what tokens 0 and 1 hold there is missing, for tokens 2 and 3 alike.
    network.embedding[1, 2] = 0.01
    network.to_value[0, 0, 2, 0] = network.to_output[0, 0, 0, 1] = 1
    return network


def mlp_steep(rng: np.random.Generator) -> Normed:
    """The error of attention falls on the MLP where SiLU is steepest, and comes out on top of itself."""
    network, strength = blank(), 10 ** rng.uniform(0, 2)
    network.up[0, 0, 0] = 2.3994 / np.sqrt(16)
    network.up[0, 1, 0], network.down[0, 0, 1] = 100, strength
    return network


def norm_before_values(rng: np.random.Generator) -> Normed:
    """The error of layer 0, made longer or shorter by the norm, goes through the values of layer 1."""
    network = blank()
    network.embedding *= 10 ** rng.uniform(-1, 1)
    network.to_value[1, 0, 1, 0], network.to_output[1, 0, 0, 1] = 10 ** rng.uniform(0, 2), 1
    network.embedding[:2, 1] = 0
    return network


FAMILIES: tuple[Callable[[np.random.Generator], Normed], ...] = (
    random_normed, short_vectors, mlp_steep, norm_before_values,
)  # fmt: skip


def measure(network, tokens: np.ndarray, n: int, replayed) -> tuple[ReplayStatistics, np.ndarray]:
    run: Run = swa_forward(network, tokens)
    hidden = replayed(network, tokens, len(tokens), n, run)
    errors = np.linalg.norm(hidden - run.hidden[:, -hidden.shape[1] :], axis=-1)
    return record_statistics(network, run, len(tokens), n), errors


def cases(rng: np.random.Generator, network: Normed) -> tuple[np.ndarray, int]:
    """A text and how much of it is replayed; the networks made by hand want four tokens, two of them missing."""
    if not network.to_query.any():
        return np.arange(4), 2
    return rng.integers(0, 64, rng.integers(1, 20)), max(1, network.window - 1) + int(rng.integers(0, 8))


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_error_behind_norms_and_mlps_is_above_the_guarantee(replayed, family, seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = family(rng)
    statistics, errors = measure(network, *cases(rng, network), replayed)
    assert (errors <= replay_error_bound(statistics) + ROUNDING).all()


def with_gains(statistics: ReplayStatistics, norm: float, mlp: float, mlp_norm: float) -> ReplayStatistics:
    """The statistics with the three gains multiplied."""
    layers = []
    for layer in statistics.layers:
        assert layer.norm is not None and layer.mlp is not None
        inner = layer.mlp.norm._replace(gain=mlp_norm * layer.mlp.norm.gain)
        changed = {"norm": layer.norm._replace(gain=norm * layer.norm.gain), "mlp": Mlp(inner, mlp * layer.mlp.gain)}
        layers.append(layer._replace(**changed))
    return statistics._replace(layers=tuple(layers))


@pytest.mark.parametrize("factors", [(0.9, 1, 1), (1, 0.9, 1), (1, 1, 0.9), (1, 0, 1)])
def test_smaller_gains_are_found_out(factors, replayed) -> None:
    found = 0
    for family in (mlp_steep, norm_before_values):
        rng = np.random.default_rng(0)
        network = family(rng)
        statistics, errors = measure(network, *cases(rng, network), replayed)
        assert (errors <= replay_error_bound(statistics)).all()
        found += int((errors > replay_error_bound(with_gains(statistics, *factors)) + ROUNDING).sum())
    assert found


@given(seed=st.integers(0, 2**32 - 1), share=st.floats(0, 3))
def test_a_norm_moves_no_further_than_its_step(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=6), rng.uniform(-2, 2, 6)
    length = np.sqrt((x**2).sum() + 6 * EPSILON)
    norm = Norm(float(np.sqrt(6) * np.abs(weights).max()), np.array([length]))
    moved = x + rng.normal(size=(200, 6)) * share * length * rng.uniform(0, 0.5, (200, 1))
    errors = np.linalg.norm(moved - x, axis=-1)

    def output(y: np.ndarray) -> np.ndarray:
        return y / np.sqrt((y**2).mean(axis=-1, keepdims=True) + EPSILON) * weights

    apart = np.linalg.norm(output(moved) - output(x), axis=-1)
    assert (apart <= [norm.error(np.array([error]))[0] + 1e-13 for error in errors]).all()  # outputs are at most 5 long


@pytest.mark.parametrize("share", [0.001, 0.3, 0.9, 0.999])
def test_a_vector_that_leaves_at_a_right_angle_reaches_the_step_of_a_norm(share: float) -> None:
    x = np.array([3.0, 0, 0, 0])
    sine, cosine = share, np.sqrt(1 - share**2)
    moved = 3 * cosine * np.array([cosine, sine, 0, 0])  # at a right angle to moved - x, whose length is 3 · sine
    assert np.isclose(np.linalg.norm(moved - x), 3 * sine, rtol=1e-12)
    apart = np.linalg.norm(moved / np.linalg.norm(moved) - x / 3) * 2
    assert np.isclose(apart, Norm(2.0, np.array([3.0])).error(np.array([3 * sine]))[0], rtol=1e-12)
    assert Norm(2.0, np.array([3.0])).error(np.array([3.0]))[0] == 4  # it can point anywhere


def test_the_slope_of_silu_is_below_its_constant() -> None:
    x = np.linspace(-30, 30, 600_001)
    slope = np.diff(x / (1 + np.exp(-x))) / np.diff(x)
    assert 0.999 * SILU_SLOPE < slope.max() < SILU_SLOPE


@pytest.mark.parametrize("n", [31, 40, 64])
@pytest.mark.parametrize("kinds", [None, WINDOW_ONLY])
def test_no_error_of_the_trained_hybrid_is_above_the_guarantee(n: int, kinds, replayed) -> None:
    settings = {} if kinds is None else {"kinds": kinds}
    tokens = records_task(seed=n, tokens=192, records=12).tokens
    for network in (load_hybrid(index=None, **settings), random_hybrid(0, index=None, **settings)):
        statistics, errors = measure(network, tokens, n, replayed)
        bound = replay_error_bound(statistics)
        assert (errors <= bound + ROUNDING).all()
        assert errors[-1].max() > 0.05


def test_one_head_of_attention_in_the_hybrid_is_what_its_statistics_say(replayed) -> None:
    """Without the MLP, and with all heads but one silent, the first layer is off by exactly mass times distance."""
    network = load_hybrid(index=None)
    weights = {**network.weights, "layers.0.down.weight": 0 * network.weights["layers.0.down.weight"]}
    weights["layers.0.output.weight"] = weights["layers.0.output.weight"].copy()
    weights["layers.0.output.weight"][:, 32:] = 0
    network.weights = weights
    statistics, errors = measure(network, records_task(seed=1, tokens=128, records=8).tokens, 40, replayed)
    assert np.allclose(errors[1], replay_error_bound(statistics)[1], rtol=1e-9, atol=ROUNDING)
    assert errors[1].max() > 0.1


def test_gains_of_the_hybrid_are_those_of_what_it_does() -> None:
    """Vectors of length √width along each channel pass a norm as they are: what comes out of them is its matrix."""
    network = load_hybrid(index=None)
    along, at_start = np.sqrt(128) * np.eye(128), np.zeros(128, int)  # at position 0 RoPE turns nothing
    for layer in range(4):
        rows = network.rows(layer, along, at_start)
        reads = network.reads(layer, along, at_start, rows)
        queries = network.queries(layer, along, at_start).reshape(4, 128, -1)
        up = network._product(network._normed(layer, "mlp_norm", along), layer, "up")
        down = network.weights[f"layers.{layer}.down.weight"]
        stretches = [(np.repeat(rows.keys, 2, axis=0), reads.key_gain), (queries, reads.query_gain)]
        for matrices, gains in (*stretches, (reads.outputs, reads.value_gain)):
            found = np.linalg.svd(matrices / np.sqrt(128), compute_uv=False)[:, 0]
            assert np.allclose(found, gains, rtol=1e-5)  # the norm's epsilon is a millionth of the mean square
        stretch = np.linalg.svd(up / np.sqrt(128), compute_uv=False)[0] * np.linalg.svd(down, compute_uv=False)[0]
        assert reads.mlp is not None and np.isclose(reads.mlp.gain, SILU_SLOPE * stretch, rtol=1e-5)


def test_a_layer_read_through_an_index_has_no_statistics() -> None:
    network = load_hybrid()
    run = swa_forward(network, records_task(seed=1, tokens=128, records=8).tokens)
    with pytest.raises(ValueError, match="network: expected global layers that are read in full, got an index in laye"):
        record_statistics(network, run, 128, 40)
