"""A decoder as replay sees it: layers, what each of them caches, and one pass over tokens.

`Network` is the protocol: the toy, the trained hybrid and what a grader lends all have it. A layer is attended in one
step, with the rows that its tokens may read handed in, so that whoever calls decides where the rows come from.

Letters: `T` tokens, `n` tokens fed, `m` rows read, `L` layers, `W` window, `D` head width of keys, `E` of values.
"""

import enum
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float64, Int

from labkit.replay.attention import in_window


class LayerKind(enum.Enum):
    """What a token reads in a layer."""

    WINDOW = "the last W tokens, itself among them"
    GLOBAL = "all tokens up to itself"


class Rows(NamedTuple):
    """What one layer has cached for some tokens, oldest first; keys are stored after RoPE."""

    keys: Float64[np.ndarray, "kv_heads m D"]
    values: Float64[np.ndarray, "kv_heads m E"]


@runtime_checkable
class Network(Protocol):
    """A decoder in steps. Positions are those in the whole text, from 0, wherever feeding starts."""

    kinds: tuple[LayerKind, ...]
    """What each layer reads: one entry per layer, the first layer first."""

    window: int
    """W, in tokens."""

    def embed(self, tokens: Int[np.ndarray, " n"]) -> Float64[np.ndarray, "n width"]:
        """Feed tokens: return the input of the first layer."""

    def rows(self, layer: int, hidden: Float64[np.ndarray, "n width"], positions: Int[np.ndarray, " n"]) -> Rows:
        """Return what the layer caches for tokens, given its input for them."""

    def attend(
        self,
        layer: int,
        hidden: Float64[np.ndarray, "n width"],
        positions: Int[np.ndarray, " n"],
        rows: Rows,
        is_visible: Bool[np.ndarray, "n m"] | None = None,
    ) -> Float64[np.ndarray, "n width"]:
        """Return the output of the layer, which is the input of the next.

        `rows` are the cached rows that the tokens can read. In a window layer `is_visible` says which of them each
        token does read. In a global layer they are all rows from position 0 on, without `is_visible`: each token reads
        those up to its own position, or what the layer's index picks of them.
        """

    def logits(self, hidden: Float64[np.ndarray, "n width"]) -> Float64[np.ndarray, "n vocabulary"]:
        """Return the logits of the next token, given the output of the last layer."""


@dataclass(frozen=True)
class Run:
    """What a pass over tokens left behind: the input of every layer, the rows of every layer, the logits."""

    hidden: Float64[np.ndarray, "layers_and_output T width"]
    rows: list[Rows]
    logits: Float64[np.ndarray, "T vocabulary"]


def refuse_unfit(
    kind: LayerKind, layer: int, positions: Int[np.ndarray, " n"], rows: Rows, is_visible: np.ndarray | None
) -> None:
    """Refuse what `attend` cannot be given in a layer of this kind.

    Raises
    ------
    ValueError
        If `is_visible` is missing or of another shape in a window layer, or given in a global one; or if the rows of
        a global layer do not reach the last position fed.
    """
    n_rows, last = rows.keys.shape[1], int(positions.max(initial=-1))
    if kind is LayerKind.WINDOW:
        shape, got = (len(positions), n_rows), None if is_visible is None else is_visible.shape
        if got != shape:
            raise ValueError(f"is_visible: expected shape {shape} in window layer {layer}, got {got}")
    elif is_visible is not None:
        raise ValueError(f"is_visible: expected None in global layer {layer}, got shape {is_visible.shape}")
    elif n_rows <= last:
        raise ValueError(f"rows: expected all from position 0 to {last} in global layer {layer}, got {n_rows} rows")


def swa_forward(network: Network, tokens: Int[np.ndarray, " T"]) -> Run:
    """Run the network over a text from its first token: a cold run, with every row there is.

    Example
    -------
    >>> from labkit.replay import ToyNetwork
    >>> run = swa_forward(ToyNetwork(layers=2, window=4, seed=0), np.arange(10))
    >>> run.hidden.shape, run.rows[1].keys.shape
    ((3, 10, 16), (1, 10, 16))
    """
    positions = np.arange(len(tokens))
    window = in_window(positions, network.window)
    hidden, rows = [network.embed(tokens)], []
    for layer, kind in enumerate(network.kinds):
        rows.append(network.rows(layer, hidden[-1], positions))
        is_visible = window if kind is LayerKind.WINDOW else None
        hidden.append(network.attend(layer, hidden[-1], positions, rows[-1], is_visible))
    return Run(np.stack(hidden), rows, network.logits(hidden[-1]))


def cache_of(run: Run, network: Network, hit: int) -> list[Rows]:
    """Return what is cached after `hit` tokens: all rows of a global layer, the last W - 1 of a window layer.

    Raises
    ------
    ValueError
        If the run has fewer than `hit` tokens.
    """
    n_tokens = run.hidden.shape[1]
    if not 0 <= hit <= n_tokens:
        raise ValueError(f"hit: expected 0 to {n_tokens}, the tokens of the run, got {hit}")
    first = max(0, hit - network.window + 1)
    return [
        part(rows, first if kind is LayerKind.WINDOW else 0, hit)
        for kind, rows in zip(network.kinds, run.rows, strict=True)
    ]


def part(rows: Rows, start: int, stop: int) -> Rows:
    """Return the rows from number `start` up to and without `stop`."""
    return Rows(rows.keys[:, start:stop], rows.values[:, start:stop])


def decode_step(network: Network, token: int, position: int, cache: list[Rows]) -> Float64[np.ndarray, " vocabulary"]:
    """Feed one token after a cached prefix of `position` tokens and return its logits; the cache stays as it was.

    `cache` holds the rows of the last tokens before `position`, one entry per layer: all of them in a global layer,
    W - 1, or `position` where that is less, in a window layer.

    Raises
    ------
    ValueError
        If `position` is below 0, or a layer's rows are missing, too few or too many.
    """
    if position < 0:
        raise ValueError(f"position: expected at least 0, got {position}")
    if len(cache) != len(network.kinds):
        raise ValueError(f"cache: expected rows for each of {len(network.kinds)} layers, got {len(cache)}")
    at, hidden = np.array([position]), network.embed(np.array([token]))
    for layer, (kind, old) in enumerate(zip(network.kinds, cache, strict=True)):
        expected = min(position, network.window - 1) if kind is LayerKind.WINDOW else position
        if old.keys.shape[1] != expected or old.values.shape[1] != expected:
            raise ValueError(f"cache: expected {expected} rows in layer {layer}, got {old.keys.shape[1]}")
        new = network.rows(layer, hidden, at)
        rows = Rows(*(np.concatenate(pair, axis=1) for pair in zip(old, new, strict=True)))
        is_visible = np.ones((1, expected + 1), bool) if kind is LayerKind.WINDOW else None
        hidden = network.attend(layer, hidden, at, rows, is_visible)
    return np.asarray(network.logits(hidden)[0])
