"""What a cold run tells about a replay that starts at a given token: masses, distances, norms, diameters.

    run = swa_forward(network, tokens)
    statistics = record_statistics(network, run, hit=64, replay_tokens=8)
    statistics.layers[0].truncated_mass        (heads, n): the weight that each token gave to rows from before the start

Everything is recorded for the n tokens that would be replayed, oldest first. No weight of the network and no token is
in it, so nothing can be run from it: an error bound can be computed, the error cannot.
Values are measured after the head's output projection, as what they add to the hidden vector, whose length `width`
counts; so all distances are in its units. A gain is the largest factor by which a matrix makes a vector longer.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Int

from labkit.replay.network import LayerKind, Network, Rows, Run


class Norm(NamedTuple):
    """RMSNorm in front of a part of a layer: x ↦ `gain` · x / length(x), in each channel times at most that."""

    gain: float
    """The largest weight of the norm, times √width; √width alone where the weights count with the matrix behind it."""

    lengths: Float64[np.ndarray, " n"]
    """√(‖x‖² + width · eps) of what goes in."""

    def error(self, error: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """Return how far the output can be where the input can be off by `error`.

        A vector that moves by e turns by at most the angle whose sine is e / ‖x‖, and two unit vectors at the angle θ
        are 2 sin(θ/2) apart; from e = ‖x‖ on it can point anywhere. eps is one more channel, which does not move.
        """
        turn = np.arcsin(np.minimum(error / self.lengths, 1))
        return np.asarray(self.gain * np.where(error < self.lengths, 2 * np.sin(turn / 2), 2.0))


class Mlp(NamedTuple):
    """The feed-forward part of a layer: its norm, and the gain of all that follows the norm."""

    norm: Norm
    gain: float


class LayerStatistics(NamedTuple):
    """One layer of a cold run, as its heads saw it. Rows from before the start are missing, the others are kept."""

    truncated_mass: Float64[np.ndarray, "heads n"]
    """The share of the weight that lay on missing rows."""

    mean_distance: Float64[np.ndarray, "heads n"]
    """‖mean of the missing values - mean of the kept values‖, each mean taken with the head's weights; 0 if none is
    missing."""

    value_diameter: Float64[np.ndarray, "heads n"]
    """The largest distance between two values that the token read, missing ones among them."""

    query_norm: Float64[np.ndarray, "heads n"]

    key_diameter: Float64[np.ndarray, "heads n"]
    """The largest distance between two kept keys that the token read."""

    weight_squares: Float64[np.ndarray, "heads n"]
    """Σ p² over the kept rows, their weights made to add up to 1."""

    query_gain: Float64[np.ndarray, " heads"]
    """From the input of the layer, after its norm, to the query."""

    key_gain: Float64[np.ndarray, " heads"]
    """To a rebuilt key; 0 in a global layer, whose rows are not rebuilt."""

    value_gain: Float64[np.ndarray, " heads"]
    """To what a rebuilt value adds to the hidden vector; 0 in a global layer."""

    value_rms_gain: Float64[np.ndarray, " heads"]
    """The same factor for a vector of random direction, in the root mean square."""

    head_width: int
    """D, whose root divides the logits."""

    norm: Norm | None = None
    """In front of attention, if there is one."""

    mlp: Mlp | None = None
    """After attention, if there is one."""

    def input_error(self, error: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """Return how far what the heads get can be off, where the input of the layer can be off by `error`."""
        return error if self.norm is None else self.norm.error(error)

    def output_error(self, error: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """Return how far the output of the layer can be off, where it is off by `error` after attention."""
        return error if self.mlp is None else np.asarray(error + self.mlp.gain * self.mlp.norm.error(error))


class ReplayStatistics(NamedTuple):
    """What was recorded for the replay of the last tokens before a hit: the window, and each layer in order."""

    window: int
    layers: tuple[LayerStatistics, ...]


class Reads(NamedTuple):
    """What the heads of a layer meet in a run: one entry per query head, the rows of shared KV heads repeated."""

    queries: Float64[np.ndarray, "heads T D"]
    keys: Float64[np.ndarray, "heads T D"]
    outputs: Float64[np.ndarray, "heads T width"]
    """Each value after the head's output projection."""

    query_gain: Float64[np.ndarray, " heads"]
    key_gain: Float64[np.ndarray, " heads"]
    value_gain: Float64[np.ndarray, " heads"]
    value_rms_gain: Float64[np.ndarray, " heads"]
    norm: Norm | None = None
    """Of all T tokens."""

    mlp: Mlp | None = None


@runtime_checkable
class ReadableNetwork(Network, Protocol):
    """A network that shows what its heads meet."""

    def reads(
        self, layer: int, hidden: Float64[np.ndarray, "n width"], positions: Int[np.ndarray, " n"], rows: Rows
    ) -> Reads:
        """Return what each head of a layer meets, given its input and the rows of all tokens."""


def record_statistics(network: ReadableNetwork, run: Run, hit: int, replay_tokens: int) -> ReplayStatistics:
    """Return what a cold run tells about replaying the last `replay_tokens` tokens before `hit`.

    Raises
    ------
    ValueError
        If the run has fewer than `hit` tokens, or there is nothing to replay.
    """
    n_tokens = run.hidden.shape[1]
    if not 1 <= hit <= n_tokens:
        raise ValueError(f"hit: expected 1 to {n_tokens}, the tokens of the run, got {hit}")
    if replay_tokens < 1:
        raise ValueError(f"replay_tokens: expected at least 1, got {replay_tokens}")
    start, positions = max(0, hit - replay_tokens), np.arange(hit)
    layers = []
    for layer, kind in enumerate(network.kinds):
        rows = Rows(*(array[:, :hit] for array in run.rows[layer]))
        reads = network.reads(layer, run.hidden[layer, :hit], positions, rows)
        window = network.window if kind is LayerKind.WINDOW else None
        layers.append(_of_layer(reads, start, window))
    return ReplayStatistics(network.window, tuple(layers))


def _of_layer(reads: Reads, start: int, window: int | None) -> LayerStatistics:
    """Return the statistics of one layer; without a window it is global, and its rows are all kept."""
    last = np.arange(start, reads.keys.shape[1])
    first = np.zeros_like(last) if window is None else np.maximum(0, last - window + 1)
    kept = first if window is None else np.maximum(start, first)
    tokens = [_of_token(reads, *rows) for rows in np.stack([first, kept, last], axis=1).tolist()]
    measured: dict[str, Any] = {name: np.stack([token[name] for token in tokens], axis=1) for name in tokens[0]}
    is_rebuilt = float(window is not None)
    return LayerStatistics(
        **measured,
        value_diameter=diameters(reads.outputs, first, last),
        key_diameter=diameters(reads.keys, kept, last),
        query_gain=reads.query_gain,
        key_gain=is_rebuilt * reads.key_gain,
        value_gain=is_rebuilt * reads.value_gain,
        value_rms_gain=is_rebuilt * reads.value_rms_gain,
        head_width=reads.queries.shape[-1],
        norm=None if reads.norm is None else _cut(reads.norm, start),
        mlp=None if reads.mlp is None else Mlp(_cut(reads.mlp.norm, start), reads.mlp.gain),
    )


def _of_token(reads: Reads, first: int, kept: int, position: int) -> dict[str, np.ndarray]:
    """Return what one token adds to `LayerStatistics`, one number per head under each name.

    It read the rows from `first` to itself; those before `kept` are missing.
    """
    n_missing, queries = kept - first, reads.queries[:, position]
    keys, outputs = reads.keys[:, first : position + 1], reads.outputs[:, first : position + 1]
    logits = np.einsum("hd,hmd->hm", queries, keys) / np.sqrt(queries.shape[-1])
    weights = _softmax(logits[:, n_missing:])
    found = {
        "truncated_mass": np.zeros(len(queries)),
        "mean_distance": np.zeros(len(queries)),
        "query_norm": np.linalg.norm(queries, axis=-1),
        "weight_squares": (weights**2).sum(axis=-1),
    }
    if n_missing:
        missing = _softmax(logits[:, :n_missing])
        apart = _mean(missing, outputs[:, :n_missing]) - _mean(weights, outputs[:, n_missing:])
        found["truncated_mass"] = _softmax(logits)[:, :n_missing].sum(axis=-1)
        found["mean_distance"] = np.linalg.norm(apart, axis=-1)
    return found


def _mean(weights: Float64[np.ndarray, "heads m"], points: Float64[np.ndarray, "heads m width"]) -> np.ndarray:
    return np.asarray(np.einsum("hm,hmw->hw", weights, points))


def diameters(
    points: Float64[np.ndarray, "heads T width"], first: Int[np.ndarray, " n"], last: Int[np.ndarray, " n"]
) -> Float64[np.ndarray, "heads n"]:
    """Return the largest distance between two of the points from each `first` to its `last`, for each head."""
    oldest = int(first.min())
    points = points[:, oldest : int(last.max()) + 1]
    apart = np.zeros((len(points), points.shape[1], points.shape[1]))
    for number in range(points.shape[1]):  # differences, not products: points close together keep their distance
        away = points[:, :number] - points[:, number, None]
        apart[:, number, :number] = np.sqrt(np.einsum("hmw,hmw->hm", away, away))
    spans = zip(first - oldest, last - oldest + 1, strict=True)
    widest = [apart[:, start:stop, start:stop].max(axis=(1, 2)) for start, stop in spans]
    return np.stack(widest, axis=1)


def _softmax(logits: Float64[np.ndarray, "heads m"]) -> Float64[np.ndarray, "heads m"]:
    below = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(np.exp(below - np.logaddexp.reduce(below, axis=-1, keepdims=True)))


def _cut(norm: Norm, start: int) -> Norm:
    return Norm(norm.gain, norm.lengths[start:])
