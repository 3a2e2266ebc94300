"""Guarantee and estimate of a bounded replay beside the error that random networks show."""

from typing import Any, Final, NamedTuple

import fp4kv
import numpy as np
from jaxtyping import Float64, Int
from labkit.plotting import COLOURS
from labkit.replay import Network, Rows, ToyNetwork, record_statistics, swa_forward
from labkit.replay.hybrid import load_hybrid
from matplotlib.axes import Axes

from pictures import replay_runs as runs

WINDOW: Final = 8
N_NETWORKS: Final = 20
SUPERSCRIPTS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Watched:
    """A network that remembers the input of every layer, and the output of the last."""

    def __init__(self, network: Network) -> None:
        self.network, self.kinds, self.window = network, network.kinds, network.window
        self.inputs: list[np.ndarray] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def attend(
        self,
        layer: int,
        hidden: Float64[np.ndarray, "n width"],
        positions: Int[np.ndarray, " n"],
        rows: Rows,
        *mask: Any,
    ) -> Float64[np.ndarray, "n width"]:
        """Return the network's output, and keep it."""
        if layer == 0:
            self.inputs = [hidden]
        self.inputs.append(self.network.attend(layer, hidden, positions, rows, *mask))
        return self.inputs[-1]


class Errors(NamedTuple):
    """By network, layer and kept token: how far a hidden vector was off, and what was said beforehand."""

    measured: np.ndarray
    guarantee: np.ndarray
    estimate: np.ndarray


class Case(NamedTuple):
    """Networks of one kind, and how much of a text is replayed."""

    layers: int
    replay_tokens: int
    output_scale: float


def measure(case: Case, n_networks: int = N_NETWORKS) -> Errors:
    """Return the errors of networks with seeds from 0, at the W - 1 tokens whose rows are kept."""
    return Errors(*(np.stack(column) for column in zip(*(_one(case, seed) for seed in range(n_networks)), strict=True)))


def _one(case: Case, seed: int) -> tuple[np.ndarray, ...]:
    network = ToyNetwork(case.layers, WINDOW, seed, output_scale=case.output_scale)
    hit = case.layers * WINDOW + 2 * WINDOW
    tokens = np.random.default_rng(1000 + seed).integers(64, size=hit)
    run, watched = swa_forward(network, tokens), Watched(network)
    fp4kv.bounded_replay(watched, tokens, hit, case.replay_tokens, {})
    measured = np.linalg.norm(np.stack(watched.inputs) - run.hidden[:, -case.replay_tokens :], axis=-1)
    statistics = record_statistics(network, run, hit, case.replay_tokens)
    errors = measured, fp4kv.replay_error_bound(statistics), fp4kv.predict_replay_error(statistics)
    return tuple(error[:, 1 - WINDOW :] for error in errors)


def pooled(errors: np.ndarray) -> Float64[np.ndarray, " layers_and_output"]:
    """Return the root mean square over networks and tokens, layer by layer."""
    return np.asarray(np.sqrt((errors**2).mean(axis=(0, 2))))


def ratios(errors: Errors) -> tuple[np.ndarray, np.ndarray]:
    """Return guarantee and estimate over the measured error, for each layer's output that the replay touches."""
    measured, guarantee, estimate = map(pooled, errors)
    is_touched = measured > 1e-12 * measured.max()
    return guarantee[is_touched] / measured[is_touched], estimate[is_touched] / measured[is_touched]


CASES: Final = {
    "damped, n = W": Case(4, WINDOW, 0.1),
    "less damped, n = W": Case(4, WINDOW, 0.3),
    "undamped, n = W": Case(4, WINDOW, 1.0),
    "twelve layers, n = W": Case(12, WINDOW, 0.3),
    "forty layers, n = W": Case(40, WINDOW, 1.0),
    "eight layers, n = 2W": Case(8, 2 * WINDOW, 0.3),
    "eight layers, n = 4W": Case(8, 4 * WINDOW, 0.3),
}


def as_table(found: dict[str, Errors]) -> tuple[list[str], list[list[str]], str]:
    """Return head, rows and caption."""
    head = ["networks", "output scale", "estimate, first", "last", "guarantee, first", "second", "last"]
    body = []
    for name, errors in found.items():
        guarantee, estimate = ratios(errors)
        body.append(
            [
                name.replace("n = ", "n\u00a0=\u00a0"),
                f"{CASES[name].output_scale:g}",
                f"{estimate[0]:.2f}",
                f"{estimate[-1]:.2f}",
                *(_times(guarantee[place]) for place in (0, 1, -1)),
            ]
        )
    caption = (
        "Over the measured error (root mean squares over 20 random networks, W = 8), after the first, the second "
        "and the last layer that the replay leaves inexact"
    )
    return head, body, caption


def _times(ratio: float) -> str:
    if ratio >= 1e6:
        return "10" + f"{np.log10(ratio):.0f}".translate(SUPERSCRIPTS)
    return f"{ratio:.1f}" if ratio < 100 else f"{ratio:,.0f}"


def draw(axes: Axes, errors: Errors) -> None:
    """Draw the three against depth."""
    styles = {
        "guarantee": (errors.guarantee, COLOURS["muted"], "^--"),
        "estimate": (errors.estimate, COLOURS["replayed"], "s--"),
        "measured": (errors.measured, COLOURS["exact"], "o-"),
    }
    for name, (values, colour, style) in styles.items():
        by_layer = pooled(values)
        is_touched = by_layer > 1e-12
        axes.plot(np.flatnonzero(is_touched), by_layer[is_touched], style, color=colour, label=name, markersize=5)
    axes.set(yscale="log", xticks=range(0, errors.measured.shape[1], 2))


def of_hybrid(n_prompts: int = 4, hit: int = 256) -> Errors:
    """Return the errors of the trained hybrid, its global layers read in full, when it replays one window."""
    network = load_hybrid(index=None)
    found = []
    for task in runs.tasks(n_prompts):
        run, watched = swa_forward(network, task.tokens[:hit]), Watched(network)
        fp4kv.bounded_replay(watched, task.tokens[:hit], hit, network.window, runs.global_rows(network, run, hit))
        measured = np.linalg.norm(np.stack(watched.inputs) - run.hidden[:, -network.window :], axis=-1)
        statistics = record_statistics(network, run, hit, network.window)
        errors = measured, fp4kv.replay_error_bound(statistics), fp4kv.predict_replay_error(statistics)
        found.append(tuple(error[:, 1:] for error in errors))
    return Errors(*(np.stack(column) for column in zip(*found, strict=True)))
