"""What an outlier of growing size does to the fifteen ordinary channels of its group; and where real outliers are."""

from typing import Final, NamedTuple

import fp4kv
import numpy as np
from labkit import plotting, tensors
from labkit.formats import GROUP_LENGTH
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, PercentFormatter

N_TOKENS: Final = 4096
SIZES: Final = 2.0 ** np.arange(0, 8.25, 0.25)
STEPS_PER_OUTLIER: Final = 12  # equal steps of s/2 from zero to amax = 6 s
FULL_ERROR_SIZE: Final = STEPS_PER_OUTLIER * np.sqrt(12)
"""The outlier, in standard deviations of the others, at which step / √12 is as large as what it rounds."""
THRESHOLD: Final = 3.0


class Reach(NamedTuple):
    """How far each channel of one layer reaches against the median channel, for each head, and how steadily."""

    layer: int
    ratios: np.ndarray  # heads, channels
    same_channel: np.ndarray  # heads: share of tokens whose largest channel is the usual one


def ordinary_errors(sizes: np.ndarray = SIZES) -> dict[str, np.ndarray]:
    """Return, for each size of a lone outlier among Gaussian channels, the relative error of the other fifteen."""
    rng = np.random.default_rng(0)
    ordinary = rng.normal(size=(N_TOKENS, GROUP_LENGTH)).astype(np.float32)
    signs = rng.choice(np.float32([-1, 1]), size=N_TOKENS)
    errors: dict[str, list[float]] = {"one scale per group": [], "one scale per channel": [], "flushed": []}
    for size in sizes:
        keys = ordinary.copy()
        keys[:, 0] = np.float32(size) * signs
        by_group = fp4kv.dequantise(fp4kv.quantise_e2m1(keys))
        by_channel = fp4kv.dequantise(fp4kv.quantise_e2m1(np.ascontiguousarray(keys.T))).T
        errors["one scale per group"].append(relative_error(keys[:, 1:], by_group[:, 1:]))
        errors["one scale per channel"].append(relative_error(keys[:, 1:], by_channel[:, 1:]))
        errors["flushed"].append(float((by_group[:, 1:] == 0).mean()))
    return {name: np.array(values) for name, values in errors.items()}


def relative_error(x: np.ndarray, decoded: np.ndarray) -> float:
    """Return ‖x - x̂‖ / ‖x‖ over everything."""
    return float(np.linalg.norm(decoded - x) / np.linalg.norm(x))


def axis_choice(n_draws: int = 100) -> dict[str, np.ndarray]:
    """Return the error of 127 ordinary channels beside one × 50, affine integers, by axis and bits: one per draw.

    Keys are 128 tokens by 128 channels.
    """
    rng = np.random.default_rng(0)
    errors: dict[str, list[float]] = {}
    for _ in range(n_draws):
        keys = rng.normal(size=(128, 128)).astype(np.float32)
        keys[:, 0] *= 50
        for name, axis in (("token", 1), ("channel", 0)):
            for bits in (2, 4):
                decoded = fp4kv.dequantise(fp4kv.quantise_int(keys, bits, 128, axis=axis, symmetric=False))
                errors.setdefault(f"{name}-{bits}", []).append(relative_error(keys[:, 1:], decoded[:, 1:]))
    return {name: np.array(values) for name, values in errors.items()}


def draw_ordinary_errors(axes: Axes, errors: dict[str, np.ndarray], sizes: np.ndarray = SIZES) -> None:
    """Draw the measured errors, and the derived line up to the plateau."""
    line = np.minimum(sizes / FULL_ERROR_SIZE, 1)
    axes.plot(sizes, line, "--", color=plotting.COLOURS["muted"], label="derived: step / √12, at most 1")
    for name, marker, filling in (("one scale per group", "o", "full"), ("one scale per channel", "s", "none")):
        axes.plot(
            sizes, errors[name], marker, markersize=4, color=plotting.COLOURS["e2m1"], fillstyle=filling, label=name
        )
    log_axes(axes)
    axes.set(xlabel="outlier (standard deviations of the others)", ylabel="error of the others", ylim=(0.02, 1.6))
    axes.legend(loc="lower right")


def log_axes(axes: Axes) -> None:
    """Give both axes logarithmic scales with plain numbers; errors in per cent."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))


def real_reach(kind: str) -> list[Reach]:
    """Return the reach of every real key or value channel, token 0 left out: a sink unlike the others."""
    load = {"keys": tensors.load_keys, "values": tensors.load_values}[kind]
    found = []
    for layer in tensors.LAYERS:
        magnitudes = np.abs(load(layer)[1:]).swapaxes(0, 1)
        reach = magnitudes.max(axis=1)
        usual = reach.argmax(axis=-1)[:, None]
        same = (magnitudes.argmax(axis=-1) == usual).mean(axis=-1)
        found.append(Reach(layer, reach / np.median(reach, axis=-1, keepdims=True), same))
    return found


def draw_reach(axes: Axes, layers: list[Reach]) -> None:
    """Draw one row for each layer, its heads side by side; a channel above the threshold is marked."""
    height = 8.0
    ticks = []
    for row, layer in enumerate(reversed(layers)):
        base, ratios = row * height, layer.ratios.ravel()
        channels = np.arange(ratios.size)
        loud = ratios > THRESHOLD
        axes.fill_between(channels, base, base + ratios, step="mid", color=plotting.COLOURS["muted"], linewidth=0)
        axes.plot(channels[loud], base + ratios[loud], "v", markersize=5, color=plotting.COLOURS["exact"])
        ticks.append(base)
    width = layers[0].ratios.shape[-1]
    axes.set(
        xticks=width * np.arange(len(layers[0].ratios)) + width / 2,
        xticklabels=[f"head {head}" for head in range(len(layers[0].ratios))],
        yticks=ticks,
        yticklabels=[f"layer {layer.layer}" for layer in reversed(layers)],
    )
    axes.vlines(
        width * np.arange(1, len(layers[0].ratios)) - 0.5,
        0,
        height * len(layers),
        plotting.COLOURS["muted"],
        linewidth=0.75,
    )
    axes.grid(axis="x", visible=False)


def energy_in_mean(kind: str) -> float:
    """Return which share of a head's energy lies in the means of its channels; the median over layers and heads."""
    load = {"keys": tensors.load_keys, "values": tensors.load_values}[kind]
    shares = []
    for layer in tensors.LAYERS:
        x = load(layer)[1:].astype(np.float64)
        shares.append((x.mean(axis=0) ** 2).sum(axis=-1) / (x**2).mean(axis=0).sum(axis=-1))
    return float(np.median(shares))


def outlier_summary(layers: list[Reach]) -> dict[str, float]:
    """Return medians over layers and heads, and how many of them have a channel above the threshold."""
    largest = np.concatenate([layer.ratios.max(axis=-1) for layer in layers])
    return {
        "ratio": float(np.median(largest)),
        "largest": float(largest.max()),
        "same": float(np.median(np.concatenate([layer.same_channel for layer in layers]))),
        "heads": int((largest > THRESHOLD).sum()),
        "of": largest.size,
    }
