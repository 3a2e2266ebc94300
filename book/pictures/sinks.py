"""What the real model's attention and keys look like: the weight on token 0, and the reach of each channel."""

import numpy as np
from fp4kv import attention_weights
from labkit import tensors
from labkit.plotting import COLOURS
from matplotlib.axes import Axes

from pictures.attention_error import causal, real_heads


def weight_on_first() -> dict[int, float]:
    """Return for each layer the mean weight that the last 64 queries of nine heads put on token 0."""
    means = {}
    for layer in tensors.LAYERS:
        q, keys, _ = real_heads(layer)
        means[layer] = float(attention_weights(q, keys, causal())[..., 0].mean())
    return means


def even_weight() -> float:
    """Return the mean weight of token 0 if every query looked at all it sees alike."""
    return float((1 / causal().sum(axis=-1)).mean())


def length_of_first(layer: int) -> tuple[float, float]:
    """Return the length of token 0's key and value, in lengths of the median token's."""
    lengths = [np.linalg.norm(load(layer), axis=-1) for load in (tensors.load_keys, tensors.load_values)]
    key, value = (float(np.mean(norms[0] / np.median(norms[1:], axis=0))) for norms in lengths)
    return key, value


def reach(x: np.ndarray) -> np.ndarray:
    """Return each channel's largest magnitude over all tokens but the first, in units of the median channel's."""
    largest = np.abs(x[1:]).max(axis=0)
    return np.asarray(largest / np.median(largest, axis=-1, keepdims=True))


def draw_weights(axes: Axes, weights: dict[int, float]) -> None:
    """Draw the weight on token 0 by layer, above a line of the even weight."""
    layers = [str(layer) for layer in weights]
    axes.bar(layers, list(weights.values()), color=COLOURS["exact"])
    axes.axhline(even_weight(), color=COLOURS["muted"], linestyle=":")
    axes.set(xlabel="layer", ylabel="weight on token 0")
    axes.grid(False, axis="x")


def draw_reach(axes: Axes, layer: int, head: int) -> None:
    """Draw the reach of the key and the value channels of one head."""
    for name, load, style, colour in (
        ("keys", tensors.load_keys, "-", "exact"),
        ("values", tensors.load_values, "--", "muted"),
    ):
        axes.plot(reach(load(layer)[:, head]), style, color=COLOURS[colour], linewidth=1.25, label=name)
    axes.set(xlabel=f"channel (layer {layer}, head {head})", ylabel="reach / median reach", ylim=(0, None))
    axes.legend()
