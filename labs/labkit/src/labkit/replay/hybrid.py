"""A trained hybrid decoder in NumPy: layers window, global, window, global, the global ones with a coarse index.

    network = load_hybrid()                                   keys of the index in E2M1
    network = load_hybrid(index=None)                         every token reads all before it
    run = swa_forward(network, records_task(seed=1, tokens=512, records=32).tokens)

It has 0.67 M weights: width 128, four query heads and two key-value heads of 32, window 32, RMSNorm before attention
and before the MLP, RoPE. It was trained, by `tools/train_hybrid`, to recall records from a text and to read the text;
`data/README.md` says from what. The weights are float16, all arithmetic is float64.

A global layer mixes each key with the key one token before: (1 - a) k_t + a k_{t-1}, with `a` learned for each
key-value head, so that a value can be found by the key in front of it. What is cached is each token's own key, after
RoPE; the mixing is done when keys are read. RoPE's angles add, so R_t k_{t-1} = R_1 R_{t-1} k_{t-1}, the cached row
turned by one position more. Rows thus depend on their own token's hidden state alone, in every layer.

Letters: `n` tokens fed, `m` rows read, `D` head width.

Source: key shift, Xu et al., "KV Shifting Attention Enhances Language Modeling", arXiv 2411.19574.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float64, Int

from labkit.replay.attention import look_up, mix, rotate
from labkit.replay.hybrid_index import BLOCK_TOKENS, CoarseIndex, IndexFormat
from labkit.replay.hybrid_reads import read_layer
from labkit.replay.network import LayerKind, Rows, refuse_unfit
from labkit.replay.statistics import Reads

Array = np.ndarray

HYBRID_KINDS: Final = (LayerKind.WINDOW, LayerKind.GLOBAL, LayerKind.WINDOW, LayerKind.GLOBAL)
WINDOW_ONLY: Final = (LayerKind.WINDOW,) * 4
INDEX_BLOCKS: Final = 8


@dataclass
class HybridNetwork:
    """A decoder with the weights given; what each method promises stands in `labkit.replay.network.Network`."""

    weights: Mapping[str, Array]
    config: Mapping[str, Any]
    kinds: tuple[LayerKind, ...]
    index: CoarseIndex | None

    def __post_init__(self) -> None:
        self.window = int(self.config["window"])

    def embed(self, tokens: Int[np.ndarray, " n"]) -> Float64[np.ndarray, "n width"]:
        """Feed tokens: return the input of the first layer.

        Raises
        ------
        TypeError, ValueError
            If tokens are not integers, or not of the vocabulary.
        """
        return look_up(self.weights["embedding.weight"], tokens)

    def rows(self, layer: int, hidden: Float64[np.ndarray, "n width"], positions: Int[np.ndarray, " n"]) -> Rows:
        """Return what the layer caches for tokens, given its input for them: own keys after RoPE, and values."""
        x = self._normed(layer, "attention_norm", hidden)
        keys = rotate(self._heads(x, layer, "key"), positions, self._rope_base(layer))
        return Rows(keys, self._heads(x, layer, "value"))

    def attend(
        self,
        layer: int,
        hidden: Float64[np.ndarray, "n width"],
        positions: Int[np.ndarray, " n"],
        rows: Rows,
        is_visible: Bool[np.ndarray, "n m"] | None = None,
    ) -> Float64[np.ndarray, "n width"]:
        """Return the output of the layer: attention, residual, MLP, residual."""
        hidden = self.after_attention(layer, hidden, positions, rows, is_visible)
        return np.asarray(hidden + self._mlp(layer, hidden))

    def after_attention(
        self,
        layer: int,
        hidden: Float64[np.ndarray, "n width"],
        positions: Int[np.ndarray, " n"],
        rows: Rows,
        is_visible: Bool[np.ndarray, "n m"] | None = None,
    ) -> Float64[np.ndarray, "n width"]:
        """Return what attention and its residual make of the input of the layer."""
        refuse_unfit(self.kinds[layer], layer, positions, rows, is_visible)
        queries = self.queries(layer, hidden, positions)
        if is_visible is None:
            rows = Rows(self.mixed_keys(layer, rows.keys), rows.values)
            reads = self.readable(queries, rows.keys, positions)
        else:
            reads = is_visible[None]
        mixed = mix(queries, rows.keys[:, None], rows.values[:, None], reads[:, None]).reshape(-1, *queries.shape[2:])
        attention = self._product(mixed.swapaxes(0, 1).reshape(len(hidden), -1), layer, "output")
        return np.asarray(hidden + attention)

    def logits(self, hidden: Float64[np.ndarray, "n width"]) -> Float64[np.ndarray, "n vocabulary"]:
        """Return the logits of the next token, given the output of the last layer."""
        normed = rms_norm(hidden, self.weights["norm.weight"], self.config["epsilon"])
        return np.asarray(normed @ self.weights["head.weight"].T)

    def reads(
        self, layer: int, hidden: Float64[np.ndarray, "n width"], positions: Int[np.ndarray, " n"], rows: Rows
    ) -> Reads:
        """Return what each head of a layer meets, for `record_statistics`; a layer with an index is refused."""
        return read_layer(self, layer, hidden, positions, rows)

    def queries(
        self, layer: int, hidden: Float64[np.ndarray, "n width"], positions: Int[np.ndarray, " n"]
    ) -> Float64[np.ndarray, "kv_heads group n D"]:
        """Return the layer's queries after RoPE, those that share a key-value head together."""
        x = self._normed(layer, "attention_norm", hidden)
        by_head = rotate(self._heads(x, layer, "query"), positions, self._rope_base(layer))
        return by_head.reshape(self.config["kv_heads"], -1, *by_head.shape[1:])

    def mixed_keys(self, layer: int, keys: Float64[np.ndarray, "kv_heads m D"]) -> Float64[np.ndarray, "kv_heads m D"]:
        """Return what a global layer's queries meet: each cached key mixed with the one before, the first with 0."""
        before = np.zeros_like(keys)
        before[:, 1:] = rotate(keys[:, :-1], np.array([1]), self._rope_base(layer))
        share = self.weights[f"layers.{layer}.shift"][:, None, None]
        return np.asarray((1 - share) * keys + share * before)

    def readable(
        self,
        queries: Float64[np.ndarray, "kv_heads group n D"],
        keys: Float64[np.ndarray, "kv_heads m D"],
        positions: Int[np.ndarray, " n"],
    ) -> Bool[np.ndarray, "_ n m"]:
        """Return which tokens of a global layer each query reads: those up to its own that the index picks."""
        m = keys.shape[1]
        is_past = positions[:, None] >= np.arange(m)
        if self.index is None:
            return is_past[None]
        blocks = self.index.picks(queries, keys, positions)
        return np.asarray(is_past & np.repeat(blocks, BLOCK_TOKENS, axis=-1)[..., :m])

    def _mlp(self, layer: int, hidden: Float64[np.ndarray, "n width"]) -> Float64[np.ndarray, "n width"]:
        up = self._product(self._normed(layer, "mlp_norm", hidden), layer, "up")
        return self._product(up / (1 + np.exp(-up)), layer, "down")

    def _heads(self, x: Float64[np.ndarray, "n width"], layer: int, name: str) -> Float64[np.ndarray, "heads n D"]:
        by_token = self._product(x, layer, name).reshape(len(x), -1, self.config["head_width"])
        return by_token.swapaxes(0, 1)

    def _product(self, x: Array, layer: int, name: str) -> Array:
        return np.asarray(x @ self.weights[f"layers.{layer}.{name}.weight"].T)

    def _normed(self, layer: int, name: str, hidden: Array) -> Array:
        return rms_norm(hidden, self.weights[f"layers.{layer}.{name}.weight"], self.config["epsilon"])

    def _rope_base(self, layer: int) -> float:
        kind = "window" if self.kinds[layer] is LayerKind.WINDOW else "global"
        return float(self.config[f"{kind}_rope_base"])


def load_hybrid(
    index: IndexFormat | None = IndexFormat.E2M1,
    blocks: int = INDEX_BLOCKS,
    kinds: Sequence[LayerKind] = HYBRID_KINDS,
) -> HybridNetwork:
    """Return the trained network.

    Parameters
    ----------
    index
        How the index of the global layers keeps its keys; None reads every row there is.
    blocks
        How many blocks of eight tokens a query reads in a global layer beside its own.
    kinds
        What each layer reads. Another choice than the trained one is another, worse network.
    """
    header, weights = read_weights()
    return assemble(weights, header["config"], index, blocks, kinds)


def random_hybrid(
    seed: int,
    index: IndexFormat | None = IndexFormat.E2M1,
    blocks: int = INDEX_BLOCKS,
    kinds: Sequence[LayerKind] = HYBRID_KINDS,
) -> HybridNetwork:
    """Return a network of the same shape with random weights drawn from the seed.

    They are of the size that training starts from; those of the logits are larger, so that a logit's variance is 1.
    """
    header, trained = read_weights()
    rng = np.random.default_rng(seed)
    depth = np.sqrt(2 * len(HYBRID_KINDS))
    weights = {}
    for name, array in trained.items():
        if array.ndim == 1:
            weights[name] = np.full(array.shape, 0.5 if name.endswith("shift") else 1.0)
            continue
        size = 1.0 if name == "embedding.weight" else array.shape[1] ** -0.5
        is_into_residual = name.endswith(("output.weight", "down.weight"))
        weights[name] = rng.normal(size=array.shape) * size / (depth if is_into_residual else 1.0)
    return assemble(weights, header["config"], index, blocks, kinds)


def assemble(
    weights: Mapping[str, Array],
    config: Mapping[str, Any],
    index: IndexFormat | None,
    blocks: int,
    kinds: Sequence[LayerKind],
) -> HybridNetwork:
    """Return a network of given weights; a layer made global that was not trained so mixes no keys."""
    if len(kinds) != config["layers"]:
        raise ValueError(f"kinds: expected {config['layers']}, one for each layer, got {len(kinds)}")
    if blocks < 0:
        raise ValueError(f"blocks: expected at least 0, got {blocks}")
    still = {f"layers.{layer}.shift": np.zeros(config["kv_heads"]) for layer in range(config["layers"])}
    coarse = None if index is None else CoarseIndex(index, blocks)
    return HybridNetwork({**still, **weights}, config, tuple(kinds), coarse)


def read_weights(file: Path | None = None) -> tuple[dict[str, Any], dict[str, Float64[np.ndarray, "..."]]]:
    """Return how the weights were made, and the weights: those of a file of `tools/train_hybrid`, or labkit's own."""
    own = as_file(files("labkit") / "data" / "hybrid.npz")
    with own as path, np.load(file or path, allow_pickle=False) as arrays:
        header = json.loads(str(arrays["header"]))
        return header, {name: arrays[name].astype(np.float64) for name in arrays.files if name != "header"}


def rms_norm(x: Float64[np.ndarray, "n width"], weight: Float64[np.ndarray, " width"], epsilon: float) -> Array:
    """Return x divided by its root mean square, times a weight for each channel."""
    return np.asarray(x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight)
