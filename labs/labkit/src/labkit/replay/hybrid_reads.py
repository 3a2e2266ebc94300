"""What the heads of the hybrid meet in a run, from which `record_statistics` takes masses, distances and gains.

RMSNorm's weights count with the matrix behind them: a norm makes a vector of length √width, which the weights of a
channel and then the matrix stretch. The MLP stretches by at most the norms of its matrices and the largest slope of
what stands between them.
"""

from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float64, Int

from labkit.replay.attention import in_window
from labkit.replay.network import LayerKind, Rows
from labkit.replay.statistics import Mlp, Norm, Reads

if TYPE_CHECKING:
    from labkit.replay.hybrid import HybridNetwork

SILU_SLOPE: Final = 1.1
"""Above the largest slope of x / (1 + e^-x), 1.09984 at x = 2.3994."""


def read_layer(
    network: "HybridNetwork",
    layer: int,
    hidden: Float64[np.ndarray, "n width"],
    positions: Int[np.ndarray, " n"],
    rows: Rows,
) -> Reads:
    """Return what each head of a layer meets, given its input and the rows of all tokens from position 0 on.

    Raises
    ------
    ValueError
        If the layer is read through an index: the smallest error can change what it picks, and then no bound holds.
    """
    is_global = network.kinds[layer] is LayerKind.GLOBAL
    if is_global and network.index is not None:
        raise ValueError(
            f"network: expected global layers that are read in full, got an index in layer {layer}, whose picks jump; "
            "load_hybrid(index=None) has none"
        )
    is_visible = None if is_global else in_window(positions, network.window)
    after = network.after_attention(layer, hidden, positions, rows, is_visible)
    queries = network.queries(layer, hidden, positions)
    kv_heads, group = queries.shape[:2]
    keys = network.mixed_keys(layer, rows.keys) if is_global else rows.keys

    to_query, to_key, to_value = (_by_head(network, layer, name) for name in ("query", "key", "value"))
    to_output = network.weights[f"layers.{layer}.output.weight"].T.reshape(kv_heads * group, -1, hidden.shape[-1])
    paths = np.repeat(to_value, group, axis=0) @ to_output
    return Reads(
        queries=queries.reshape(-1, *queries.shape[2:]),
        keys=np.repeat(keys, group, axis=0),
        outputs=np.repeat(rows.values, group, axis=0) @ to_output,
        query_gain=_gains(to_query),
        key_gain=np.repeat(_gains(to_key), group),
        value_gain=_gains(paths),
        value_rms_gain=np.linalg.norm(paths, axis=(-2, -1)) / np.sqrt(hidden.shape[-1]),
        norm=_norm(network, hidden),
        mlp=Mlp(_norm(network, after), _mlp_gain(network, layer)),
    )


def _by_head(network: "HybridNetwork", layer: int, name: str) -> Float64[np.ndarray, "heads width D"]:
    """Return a projection with the weights of the norm in front of it, one matrix for each head."""
    matrix = network.weights[f"layers.{layer}.{name}.weight"] * network.weights[f"layers.{layer}.attention_norm.weight"]
    return np.asarray(matrix.reshape(-1, network.config["head_width"], matrix.shape[1]).swapaxes(1, 2))


def _gains(matrices: Float64[np.ndarray, "heads width out"]) -> Float64[np.ndarray, " heads"]:
    return np.asarray(np.linalg.norm(matrices, 2, axis=(-2, -1)))


def _norm(network: "HybridNetwork", hidden: Float64[np.ndarray, "n width"]) -> Norm:
    width = hidden.shape[-1]
    return Norm(float(np.sqrt(width)), np.sqrt((hidden**2).sum(axis=-1) + width * network.config["epsilon"]))


def _mlp_gain(network: "HybridNetwork", layer: int) -> float:
    up, down = (network.weights[f"layers.{layer}.{name}.weight"] for name in ("up", "down"))
    widened = up * network.weights[f"layers.{layer}.mlp_norm.weight"]
    return float(SILU_SLOPE * np.linalg.norm(widened, 2) * np.linalg.norm(down, 2))
