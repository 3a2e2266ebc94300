"""The error of attention outputs against stored bits, for keys, for values and for both, synthetic and real."""

import fp4kv
import numpy as np
from labkit import tensors
from labkit.plotting import COLOURS
from labkit.schemes import SCHEMES, Placement, SweepRow
from matplotlib.axes import Axes

N_HEADS, N_QUERIES, N_TOKENS, WIDTH = 9, 64, 512, 64  # the shape of the real tensors
MARKERS = {"FP8, UE8M0 per 32": "v", "INT": "o", "E2M1, E4M3 per 16": "^", "MXFP4": "D"}
NAMES = {"FP8, UE8M0 per 32": "FP8", "INT": "integers", "E2M1, E4M3 per 16": "E2M1"}

Heads = tuple[np.ndarray, np.ndarray, np.ndarray]
Errors = dict[tuple[str, Placement], float]


def causal() -> np.ndarray:
    """Return which of all tokens each of the last 64 sees: itself and those before it."""
    return np.tri(N_QUERIES, N_TOKENS, N_TOKENS - N_QUERIES, dtype=bool)


def gaussian_heads() -> Heads:
    """Return independent Gaussian queries, keys and values of nine heads (seed 0)."""
    rng = np.random.default_rng(0)
    shapes = (N_HEADS, N_QUERIES, WIDTH), (N_HEADS, N_TOKENS, WIDTH), (N_HEADS, N_TOKENS, WIDTH)
    q, keys, values = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    return q, keys, values


def real_heads(layer: int) -> Heads:
    """Return a layer's nine query heads, each with the keys and values of the head that three of them share."""
    q, keys, values = (
        load(layer).swapaxes(0, 1) for load in (tensors.load_queries, tensors.load_keys, tensors.load_values)
    )
    per_group = len(q) // len(keys)
    return q, np.repeat(keys, per_group, axis=0), np.repeat(values, per_group, axis=0)


def sweep(heads: Heads) -> list[SweepRow]:
    """Return the sweep over all schemes and placements with the causal mask."""
    return fp4kv.attention_error_sweep(*heads, causal())


def median_errors(sweeps: list[list[SweepRow]]) -> Errors:
    """Return the median error over several sweeps."""
    return {
        (rows[0].scheme, rows[0].placement): float(np.median([row.error for row in rows]))
        for rows in zip(*sweeps, strict=True)
    }


def size_of_logits(layer: int) -> float:
    """Return the mean length of a query times that of a key, divided by the width."""
    q, keys, _ = real_heads(layer)
    return float(np.linalg.norm(q, axis=-1).mean() * np.linalg.norm(keys, axis=-1).mean() / WIDTH)


def cost_of_keys(rows: list[SweepRow], scheme: str = "E2M1, E4M3 per 16") -> float:
    """Return how many times as much error a scheme makes in the keys as in the values."""
    errors = {row.placement: row.error for row in rows if row.scheme == scheme}
    return errors[Placement.KEYS] / errors[Placement.VALUES]


def draw(axes: Axes, errors: Errors, placement: Placement) -> None:
    """Draw the errors of one placement against stored bits; the baseline is left out."""
    families: dict[str, list[tuple[float, float]]] = {}
    for scheme in SCHEMES[1:]:
        family = "INT" if scheme.name.startswith("INT") else scheme.name
        families.setdefault(family, []).append((scheme.bits_per_element, errors[scheme.name, placement]))
    colours = {scheme.name: scheme.colour for scheme in SCHEMES} | {"INT": "integer"}
    for family, points in families.items():
        bits, sizes = zip(*points, strict=True)
        style = MARKERS[family] + ("-" if family == "INT" else "")
        axes.plot(bits, sizes, style, color=COLOURS[colours[family]], label=NAMES.get(family, family))
    axes.set_yscale("log", base=2)
    axes.set_ylim(2**-9, 2**1)


def as_table(synthetic: Errors, real: Errors) -> tuple[list[str], list[list[str]]]:
    """Return the head and the cells of the table, baseline first."""
    head = ["format", "bits", *(f"{data}: {p.value}" for data in ("Gaussian", "real") for p in Placement)]
    columns = [(errors, placement) for errors in (synthetic, real) for placement in Placement]
    return head, [
        [s.name, f"{s.bits_per_element:g}", *(as_number(errors[s.name, p]) for errors, p in columns)] for s in SCHEMES
    ]


def as_number(error: float) -> str:
    """Return an error with three decimals; the real tensors are stored in FP16, which keeps them as they are."""
    return "0" if error == 0 else f"{error:.3f}" if error >= 5e-4 else f"{error:.5f}"
