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

from labkit.replay.attention import look_up, mix, mix_row_by_row, rotate
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
        return look_up(self.embedding, tokens)

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
        mixed = (mix_row_by_row if self.row_by_row else mix)(queries, *rows, is_visible)
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
