"""How loose the guarantee of an E2M1 cache is: over contexts and widths, and at which of its steps."""

from typing import NamedTuple

import fp4kv
import numpy as np
from fp4kv import attention_weights, dequantise, error_radius, quantise_e2m1
from labkit.plotting import COLOURS
from matplotlib.axes import Axes

from pictures.comparison import Comparison, compare, gaussian_cache, rms

CONTEXTS = (128, 512, 2048, 8192, 32768)
WIDTHS = (64, 128, 256, 512)
LONGEST_AT = {64: 32768}  # the diameter of 32,768 values takes seconds even at width 64
LONGEST = 8192
N_QUERIES = 16
STYLES = {"guarantee": ("^-", "e2m1"), "measured": ("o", "exact"), "estimate": ("--", "e2m1")}

Table = dict[tuple[int, int], Comparison]


class Step(NamedTuple):
    """One step from the guarantee towards the error: what is known there, and what remains of either term."""

    known: str
    keys: float
    values: float


def over_contexts_and_widths() -> Table:
    """Return the comparison for every width and context, 16 Gaussian queries each, seed 0."""
    rng = np.random.default_rng(0)
    return {
        (width, context): compare(*gaussian_cache(context, width, N_QUERIES, rng))
        for width in WIDTHS
        for context in CONTEXTS
        if context <= LONGEST_AT.get(width, LONGEST)
    }


def draw(axes: Axes, table: Table, width: int) -> None:
    """Draw the three errors of one width over the context."""
    contexts = [context for w, context in table if w == width]
    for name, (style, colour) in STYLES.items():
        sizes = [rms(getattr(table[width, context], name)) for context in contexts]
        axes.plot(contexts, sizes, style, color=COLOURS[colour], label=name)
    axes.set(xlabel=f"context (tokens), width {width}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks([2**n for n in (7, 9, 11, 13, 15)])


def steps(n_tokens: int = 1024, width: int = 64) -> list[Step]:
    """Return the two terms of the guarantee with more and more known, down to the error itself (seed 1)."""
    q, keys, values = gaussian_cache(n_tokens, width, N_QUERIES, np.random.default_rng(1))
    packed = quantise_e2m1(keys), quantise_e2m1(values)
    decoded = [dequantise(part).astype(np.float64) for part in packed]
    weights, exact = attention_weights(q, decoded[0]), attention_weights(q, keys)
    logit_errors = q @ (decoded[0] - keys).T / np.sqrt(width)
    value_errors, radii = decoded[1] - values, np.linalg.norm(error_radius(packed[1]), axis=-1)

    across = diameter(decoded[1], radii)
    from_radii = fp4kv.weight_error_bound(fp4kv.logit_error_bound(q, packed[0])) * across
    from_logits = np.tanh(np.ptp(logit_errors, axis=-1) / 4) * diameter(values)
    from_weights = np.abs(weights - exact).sum(axis=-1) / 2 * diameter(values)
    sizes = np.linalg.norm(value_errors, axis=-1)
    return [
        Step("the packed cache", rms(from_radii), rms(weights @ radii)),
        Step("the error of every logit", rms(from_logits), rms(weights @ radii)),
        Step("the change of every weight, the size of every value error", rms(from_weights), rms(weights @ sizes)),
        Step("everything", norms((weights - exact) @ values), norms(weights @ value_errors)),
    ]


def norms(vectors: np.ndarray) -> float:
    """Return the root mean square of the vectors' lengths."""
    return rms(np.linalg.norm(vectors, axis=-1))


def diameter(points: np.ndarray, radii: np.ndarray | float = 0.0) -> float:
    """Return the largest distance between any two points, each moved outwards by its radius."""
    points = np.asarray(points, np.float64)
    squares = (points**2).sum(axis=-1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0))
    radii = np.broadcast_to(radii, squares.shape)
    reach = distances + radii[:, None] + radii
    np.fill_diagonal(reach, 0)
    return float(reach.max())


def as_table(rows: list[Step]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the cells of the table of steps."""
    return ["what is known", "keys' part", "values' part"], [
        [r.known, f"{r.keys:.3g}", f"{r.values:.3g}"] for r in rows
    ]
