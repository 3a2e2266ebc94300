"""Every way of the course to store a cache, measured: on one loud channel, and on real keys, values and outputs."""

import textwrap
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import fp4kv
import numpy as np
from labkit import tensors
from labkit.candidates import Parts, Reads, candidates, what_it_reads
from labkit.formats import Cached
from labkit.plotting import COLOURS
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from pictures.growing import log_axes, relative_error

PARTS: Final = Parts(
    fp4kv.quantise_with_granularity,
    fp4kv.split_outliers,
    fp4kv.rotate_hadamard,
    fp4kv.centre_keys,
    fp4kv.scale_four_over_six,
)
N_TOKENS, WIDTH, LOUD = 512, 64, 5  # as many tokens and channels as the real heads have
SIZES: Final = 2.0 ** np.arange(8)
QUERIES_PER_HEAD: Final = 3
GROWING: Final = {
    "INT4, one scale per token": ("integer", "s-"),
    "INT4 per token, rotated": ("integer", "x--"),
    "E2M1, E4M3 per 16": ("e2m1", "o-"),
    "E2M1, rotated": ("e2m1", "x--"),
    "INT4 per token, outliers in FP16": ("integer", "^-."),
    "INT4 per channel, affine blocks of 32": ("integer", "D:"),
}
FAMILIES: Final = {
    "integers": ("integer", "s"),
    "E2M1": ("e2m1", "o"),
    "MXFP4": ("mxfp4", "D"),
    "FP8": ("e4m3", "v"),
}
FILLED: Final = {Reads.TOKEN: "full", Reads.EARLIER: "full", Reads.BLOCK: "left", Reads.ALL: "none"}
IN_TABLE: Final = {Reads.TOKEN: "itself", Reads.EARLIER: "before", Reads.BLOCK: "block", Reads.ALL: "all"}
NO_BREAK: Final = "\u00a0"
WIDEST_NAME: Final = 19
DRAWN_BITS: Final = (2.8, 9.0)
COLUMNS: Final = ("loud × 4", "loud × 50", "keys", "values", "output, keys only", "output")

ROTATED_INTEGERS: Final = "INT4 per token, rotated"
BLOCK_BEFORE: Final = "E2M1, centred on the block before"
SIBLINGS_READ: Final = {BLOCK_BEFORE: Reads.EARLIER}

Sibling = Callable[[np.ndarray], Cached]


class Row(NamedTuple):
    """One scheme: what it stores, what it must know, and its errors by column of the table."""

    name: str
    bits_per_element: float
    reads: Reads
    errors: dict[str, float]


def rotated_integers(x: np.ndarray, bits: int = 4) -> Cached:
    """Return x after rotation, integers with one float32 scale per token, and rotation back."""
    decoded = fp4kv.dequantise(fp4kv.quantise_int(fp4kv.rotate_hadamard(x), bits, x.shape[-1]))
    return Cached(fp4kv.rotate_hadamard(decoded).astype(np.float32), bits + 32 / x.shape[-1])


def all_schemes(x: np.ndarray, siblings: dict[str, Sibling]) -> dict[str, Cached]:
    """Return what each candidate of the course and each sibling makes of x."""
    return {**candidates(x, PARTS), **{name: sibling(x) for name, sibling in siblings.items()}}


def loud_channel(size: float) -> np.ndarray:
    """Return Gaussian keys of seed 0, one channel of them `size` times as large."""
    x = np.random.default_rng(0).normal(size=(N_TOKENS, WIDTH)).astype(np.float32)
    x[:, LOUD] *= np.float32(size)
    return x


def mean_channel_error(x: np.ndarray, cached: Cached) -> float:
    """Return the mean over channels of the relative error."""
    return float(fp4kv.channel_error(x, cached.decoded).mean())


def grow(siblings: dict[str, Sibling], sizes: np.ndarray = SIZES) -> dict[str, np.ndarray]:
    """Return the mean channel error of each scheme at each size of one loud channel."""
    runs = []
    for size in sizes:
        x = loud_channel(size)
        runs.append({name: mean_channel_error(x, cached) for name, cached in all_schemes(x, siblings).items()})
    return {name: np.array([run[name] for run in runs]) for name in runs[0]}


def measure_head(
    q: np.ndarray, keys: np.ndarray, values: np.ndarray, is_visible: np.ndarray, siblings: dict[str, Sibling]
) -> dict[str, tuple[float, ...]]:
    """Return the four errors of each scheme on one real head: keys, values, output from its keys, from both."""
    output = fp4kv.attend(q, keys, values, is_visible)
    stored_keys, stored_values = all_schemes(keys, siblings), all_schemes(values, siblings)
    found = {}
    for name in stored_keys:
        both = np.hstack([values, stored_values[name].decoded])
        from_keys, from_both = np.split(fp4kv.attend(q, stored_keys[name].decoded, both, is_visible), 2, axis=1)
        found[name] = (
            mean_channel_error(keys, stored_keys[name]),
            mean_channel_error(values, stored_values[name]),
            relative_error(output, from_keys),
            relative_error(output, from_both),
        )
    return found


def measure_real(siblings: dict[str, Sibling]) -> dict[str, np.ndarray]:
    """Return the medians over six layers and three heads of the errors of `measure_head`."""
    runs = []
    for layer in tensors.LAYERS:
        keys, values, queries = tensors.load_keys(layer), tensors.load_values(layer), tensors.load_queries(layer)
        n_queries, n_heads = len(queries), keys.shape[1]
        positions = np.arange(len(keys))
        is_visible = np.tile(positions <= positions[-n_queries:, None], (QUERIES_PER_HEAD, 1))
        for head in range(n_heads):
            q = queries[:, QUERIES_PER_HEAD * head :][:, :QUERIES_PER_HEAD].swapaxes(0, 1).reshape(-1, keys.shape[-1])
            runs.append(measure_head(q, keys[:, head], values[:, head], is_visible, siblings))
    return {name: np.median([run[name] for run in runs], axis=0) for name in runs[0]}


def measure(siblings: dict[str, Sibling]) -> list[Row]:
    """Return every scheme with its errors, from the fewest stored bits to the most.

    The split stores what one outlier channel costs, as in the loud keys and in the median real head.
    """
    synthetic, real = grow(siblings, np.array([4.0, 50.0])), measure_real(siblings)
    bits = {name: cached.bits_per_element for name, cached in all_schemes(loud_channel(50), siblings).items()}
    rows = [
        Row(
            name,
            bits[name],
            SIBLINGS_READ.get(name) or what_it_reads(name),
            dict(zip(COLUMNS, map(float, (*synthetic[name], *real[name])), strict=True)),
        )
        for name in bits
    ]
    return sorted(rows, key=lambda row: row.bits_per_element)


def best_so_far(rows: list[Row], column: str) -> set[str]:
    """Return the schemes that no scheme of as many bits or fewer beats in one column."""
    errors = {row.name: (row.bits_per_element, row.errors[column]) for row in rows}
    return {
        name
        for name, (bits, error) in errors.items()
        if not any(other_bits <= bits and other < error for other_bits, other in errors.values())
    }


def draw_growth(axes: Axes, growth: dict[str, np.ndarray], sizes: np.ndarray = SIZES) -> None:
    """Draw the mean channel error of the schemes of GROWING against the size of the loud channel."""
    for name, (colour, style) in GROWING.items():
        axes.plot(sizes, growth[name], style, markersize=5, color=COLOURS[colour], label=name)
    log_axes(axes)
    axes.set(xlabel="size of one channel of 64 (times the others)", ylabel="mean channel error")


def draw_errors(axes: Axes, rows: list[Row], column: str) -> None:
    """Draw one column of the table against stored bits; the line runs along the best that need no later token."""
    drawn = [row for row in rows if DRAWN_BITS[0] < row.bits_per_element < DRAWN_BITS[1]]
    causal = [row for row in drawn if row.reads in (Reads.TOKEN, Reads.EARLIER)]
    best = best_so_far(causal, column)
    edge = [(row.bits_per_element, row.errors[column]) for row in causal if row.name in best]
    x, y = zip(*edge, (DRAWN_BITS[1], edge[-1][1]), strict=True)
    axes.step(x, y, where="post", color=COLOURS["muted"], linewidth=1, label="best without later tokens")

    for row in drawn:
        colour, marker = FAMILIES[family_of(row)]
        axes.plot(row.bits_per_element, row.errors[column], **marked(colour, marker, FILLED[row.reads]))
    log_axes(axes)
    axes.set(xscale="linear", xlim=DRAWN_BITS, xticks=range(3, 10), xlabel="stored (bits per element)")


def legend_of_errors(axes: Axes) -> list[Line2D]:
    """Return what the legend of `draw_errors` shows: formats by shape, what must be known by filling."""
    shapes = [Line2D([], [], label=name, **marked(*FAMILIES[name], "full")) for name in FAMILIES]
    fillings = [
        Line2D([], [], label=label, **marked("muted", "o", filling))
        for label, filling in (("waits for a block", "left"), ("needs all tokens", "none"))
    ]
    return [*shapes, *fillings, *axes.get_lines()[:1]]


def marked(colour: str, marker: str, filling: str) -> dict[str, Any]:
    """Return how a marker without a line is drawn."""
    return {
        "marker": marker,
        "markersize": 5.5,
        "linestyle": "none",
        "color": COLOURS[colour],
        "fillstyle": filling,
        "markerfacecoloralt": "none",
    }


def family_of(row: Row) -> str:
    """Return the family that a scheme is drawn with."""
    return next((family for family in FAMILIES if row.name.startswith(family)), "integers")


def in_few_lines(name: str) -> str:
    """Return a name that a narrow column breaks where it should."""
    lines = textwrap.wrap(name.replace(", one scale per", " per"), WIDEST_NAME)
    return " ".join(line.replace(" ", NO_BREAK) for line in lines)


def as_table(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the cells of the table; a star marks what is best at no more than its bits."""
    best = {column: best_so_far(rows, column) for column in COLUMNS}
    cells = [
        [
            in_few_lines(row.name),
            f"{row.bits_per_element:.2f}",
            IN_TABLE[row.reads],
        ]
        + [f"{row.errors[column]:.3f}{'*' if row.name in best[column] else ''}" for column in COLUMNS]
        for row in rows
    ]
    return ["scheme", "bits", "tokens known", *COLUMNS], cells
