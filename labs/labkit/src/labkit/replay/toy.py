"""A toy decoder with random weights: window layers of attention and a residual, nothing else.

    network = ToyNetwork(layers=4, window=8, seed=0)
    run = swa_forward(network, tokens)

The weights come from the seed, in float64: queries, keys and values of random directions keep about the size of the
hidden vectors. `output_scale` is the size of what attention adds, beside what is there; `logit_scale` multiplies the
logits, so that attention is more or less sharp.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64, Int

from labkit.replay.network import LayerKind, Rows, refuse_unfit
from labkit.replay.statistics import Reads

VOCABULARY = 64


class ToyNetwork:
    """A decoder of `layers` window layers, or of the `kinds` given, without norms and MLPs.

    With `row_by_row` every row is computed by itself from the rows that it reads and from nothing else: in the same
    order, whatever else is in the batch. Slow, and equal bit for bit wherever feeding starts.

    Raises
    ------
    ValueError
        If there is no layer, window or head, or the width is not even.
    """

    def __init__(
        self,
        layers: int = 4,
        window: int = 8,
        seed: int = 0,
        *,
        width: int = 16,
        heads: int = 1,
        output_scale: float = 1.0,
        logit_scale: float = 1.0,
        kinds: Sequence[LayerKind] | None = None,
        row_by_row: bool = False,
    ) -> None:
        self.kinds = (LayerKind.WINDOW,) * layers if kinds is None else tuple(kinds)
        self.window, self.row_by_row = window, row_by_row
        for name, value in (("layers", len(self.kinds)), ("window", window), ("heads", heads), ("width", width)):
            if value < 1 or value != int(value):
                raise ValueError(f"{name}: expected a whole number from 1 on, got {value}")
        if width % 2:
            raise ValueError(f"width: expected an even number, got {width}")

        rng, n_layers = np.random.default_rng(seed), len(self.kinds)
        size = (n_layers, heads, width, width)
        self.embedding = rng.normal(size=(VOCABULARY, width))
        self.to_query = logit_scale * rng.normal(size=size) / np.sqrt(width)
        self.to_key = rng.normal(size=size) / np.sqrt(width)
        self.to_value = rng.normal(size=size) / np.sqrt(width)
        self.to_output = output_scale * rng.normal(size=size) / np.sqrt(width * heads)
        self.to_logits = rng.normal(size=(width, VOCABULARY)) / np.sqrt(width)

    def embed(self, tokens: Int[np.ndarray, " n"]) -> Float64[np.ndarray, "n width"]:
        """Feed tokens: return the input of the first layer.

        Raises
        ------
        TypeError, ValueError
            If tokens are not integers, or not from 0 to 63.
        """
        if not np.issubdtype(tokens.dtype, np.integer):
            raise TypeError(f"tokens: expected integers, got {tokens.dtype}")
        wrong = tokens[(tokens < 0) | (tokens >= VOCABULARY)]
        if wrong.size:
            raise ValueError(f"tokens: expected 0 to {VOCABULARY - 1}, got {wrong[0]}")
        return np.asarray(self.embedding[tokens])

    def rows(self, layer: int, hidden: Float64[np.ndarray, "n width"], positions: Int[np.ndarray, " n"]) -> Rows:
        """Return what the layer caches for tokens, given its input for them."""
        keys = rotate(self._times(hidden, self.to_key[layer]), positions)
        return Rows(keys, self._times(hidden, self.to_value[layer]))

    def attend(
        self,
        layer: int,
        hidden: Float64[np.ndarray, "n width"],
        positions: Int[np.ndarray, " n"],
        rows: Rows,
        is_visible: Bool[np.ndarray, "n m"] | None = None,
    ) -> Float64[np.ndarray, "n width"]:
        """Return the output of the layer: its input and what attention adds."""
        refuse_unfit(self.kinds[layer], layer, positions, rows, is_visible)
        if is_visible is None:
            is_visible = positions[:, None] >= np.arange(rows.keys.shape[1])
        queries = rotate(self._times(hidden, self.to_query[layer]), positions)
        mixed = (mix_row_by_row if self.row_by_row else mix)(queries, rows, is_visible)
        return np.asarray(hidden + self._times(mixed, self.to_output[layer]).sum(axis=0))

    def logits(self, hidden: Float64[np.ndarray, "n width"]) -> Float64[np.ndarray, "n vocabulary"]:
        """Return the logits of the next token, given the output of the last layer."""
        return self._times(hidden, self.to_logits)

    def reads(
        self, layer: int, hidden: Float64[np.ndarray, "n width"], positions: Int[np.ndarray, " n"], rows: Rows
    ) -> Reads:
        """Return what each head of a layer meets, for `record_statistics`."""
        to_output = self.to_output[layer]
        paths = self.to_value[layer] @ to_output
        return Reads(
            queries=rotate(hidden @ self.to_query[layer], positions),
            keys=rows.keys,
            outputs=rows.values @ to_output,
            query_gain=np.linalg.norm(self.to_query[layer], 2, axis=(-2, -1)),
            key_gain=np.linalg.norm(self.to_key[layer], 2, axis=(-2, -1)),
            value_gain=np.linalg.norm(paths, 2, axis=(-2, -1)),
            value_rms_gain=np.linalg.norm(paths, axis=(-2, -1)) / np.sqrt(hidden.shape[-1]),
        )

    def _times(
        self, x: Float64[np.ndarray, "... n width"], matrix: Float64[np.ndarray, "*heads width out"]
    ) -> Float64[np.ndarray, "*heads n out"]:
        """Return x times each matrix. Row by row, the product for one row does not depend on the others."""
        if not self.row_by_row:
            return np.asarray(x @ matrix)
        return np.asarray((x[..., :, None] * matrix[..., None, :, :]).sum(axis=-2))


def mix(
    queries: Float64[np.ndarray, "heads n D"], rows: Rows, is_visible: Bool[np.ndarray, "n m"]
) -> Float64[np.ndarray, "heads n E"]:
    """Return the values of the rows that each query sees, averaged with its weights."""
    logits = queries @ rows.keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])
    logits[:, ~is_visible] = -np.inf
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True, initial=-np.finfo(np.float64).max))
    return np.asarray(weights @ rows.values / weights.sum(axis=-1, keepdims=True))


def mix_row_by_row(
    queries: Float64[np.ndarray, "heads n D"], rows: Rows, is_visible: Bool[np.ndarray, "n m"]
) -> Float64[np.ndarray, "heads n E"]:
    """Return the same as `mix`, each query by itself, from the rows that it sees and from no other."""
    mixed = np.empty((*queries.shape[:2], rows.values.shape[-1]))
    for number, seen in enumerate(is_visible):
        keys, values = rows.keys[:, seen], rows.values[:, seen]
        logits = (queries[:, number, None] * keys).sum(axis=-1) / np.sqrt(queries.shape[-1])
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        mixed[:, number] = (weights[..., None] * values).sum(axis=1) / weights.sum(axis=-1, keepdims=True)
    return mixed


def rotate(
    x: Float64[np.ndarray, "heads n D"], positions: Int[np.ndarray, " n"], base: float = 1e4
) -> Float64[np.ndarray, "heads n D"]:
    """Return x after RoPE: channels c and c + D/2 turned by position times base^(-2c/D)."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * base ** (-np.arange(half) / half)
    cosine, sine = np.cos(angles), np.sin(angles)
    low, high = x[..., :half], x[..., half:]
    return np.concatenate([low * cosine - high * sine, high * cosine + low * sine], axis=-1)
