"""The measurements of chapter 2: how much signal each format leaves over its error, and at how many bits."""

from collections.abc import Callable
from typing import NamedTuple

import fp4kv
import numpy as np
from labkit import tensors
from labkit.block_formats import round_trip_fp8, round_trip_mxfp4
from labkit.formats import GROUP_LENGTH, INTEGER_BITS, UE8M0_GROUP_LENGTH
from labkit.plotting import COLOURS, DECIBELS_PER_BIT
from matplotlib.axes import Axes

N_GAUSSIAN = 320_000
SCALE_BITS = 8  # E4M3 and UE8M0
FLOAT32_BITS = 32
MARKERS = {"symmetric integers": "o", "affine integers": "s", "E2M1": "^", "MXFP4": "D", "FP8": "v"}

RoundTrip = Callable[[np.ndarray], np.ndarray]


class Scheme(NamedTuple):
    """A format with its groups: what it stores per element, and what it makes of an array."""

    family: str
    label: str
    colour: str
    bits_per_element: float
    round_trip: RoundTrip


class Row(NamedTuple):
    """One scheme measured on several data sets: a line of the table."""

    scheme: Scheme
    decibels: dict[str, float]


def data_sets() -> dict[str, np.ndarray]:
    """Return 320,000 Gaussian values of seed 0, and all the real keys and values that labkit has."""
    return {
        "Gaussian": np.random.default_rng(0).normal(size=N_GAUSSIAN).astype(np.float32),
        "keys": np.stack([tensors.load_keys(layer) for layer in tensors.LAYERS]),
        "values": np.stack([tensors.load_values(layer) for layer in tensors.LAYERS]),
    }


def schemes() -> list[Scheme]:
    """Return every format that chapter 2 compares, the baseline first."""
    block = 4 + SCALE_BITS / GROUP_LENGTH, 4 + SCALE_BITS / UE8M0_GROUP_LENGTH, 8 + SCALE_BITS / UE8M0_GROUP_LENGTH
    return [
        Scheme("FP16", "FP16, the baseline", "exact", 16, lambda x: x.astype(np.float16).astype(np.float32)),
        Scheme("FP8", "E4M3, UE8M0 per 32", "e4m3", block[2], fp8),
        *(integers(bits, is_symmetric) for is_symmetric in (True, False) for bits in INTEGER_BITS),
        Scheme("E2M1", "E2M1, E4M3 per 16", "e2m1", block[0], lambda x: fp4kv.dequantise(fp4kv.quantise_e2m1(x))),
        Scheme("MXFP4", "E2M1, UE8M0 per 32 (MXFP4)", "mxfp4", block[1], mxfp4),
    ]


def integers(bits: int, is_symmetric: bool) -> Scheme:
    """Return integers in groups of 32 with FP32 scales, and FP32 minimums where they are affine."""
    kind, n_floats, colour = ("symmetric", 1, "integer") if is_symmetric else ("affine", 2, "evicted")
    group = UE8M0_GROUP_LENGTH

    def round_trip(x: np.ndarray) -> np.ndarray:
        return fp4kv.dequantise(fp4kv.quantise_int(x, bits, group, symmetric=is_symmetric))

    stored = bits + n_floats * FLOAT32_BITS / group
    return Scheme(f"{kind} integers", f"{bits}-bit integers, {kind}", colour, stored, round_trip)


def fp8(x: np.ndarray) -> np.ndarray:
    """Return x after E4M3 with one UE8M0 scale per 32."""
    return round_trip_fp8(x, fp4kv.round_to_e4m3, fp4kv.ue8m0_exponent)


def mxfp4(x: np.ndarray) -> np.ndarray:
    """Return x after E2M1 with one power-of-two scale per 32."""
    return round_trip_mxfp4(x, fp4kv.encode_e2m1, fp4kv.decode_e2m1)


def measure(data: dict[str, np.ndarray]) -> list[Row]:
    """Return the decibels of every scheme on every data set."""
    return [Row(s, {name: decibels(x, s.round_trip(x)) for name, x in data.items()}) for s in schemes()]


def decibels(x: np.ndarray, approximation: np.ndarray) -> float:
    """10 log10 of the energy of x over the energy of the error; infinity where nothing changed."""
    signal = x.astype(np.float64)
    noise = ((signal - approximation) ** 2).sum()
    return float(10 * np.log10((signal**2).sum() / noise)) if noise else np.inf


def channel_ratio(x: np.ndarray) -> float:
    """Return how much farther the largest channel reaches than the median one, in the median layer.

    `x` has the axes layer, token, head, channel; token 0, an attention sink unlike the others, is left out.
    """
    reach = np.abs(x[:, 1:]).max(axis=1)
    ratios = reach.max(axis=-1) / np.median(reach, axis=-1)
    return float(np.median(ratios))


def draw(axes: Axes, rows: list[Row], name: str) -> None:
    """Draw one data set: a line of 6.02 dB per bit from the 8-bit symmetric integers down, and every scheme."""
    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault(row.scheme.family, []).append(row)
    del families["FP16"]  # exact or nearly so: it would press the others together

    eight = families["symmetric integers"][0]
    bits = np.array([3, eight.scheme.bits_per_element])
    line = eight.decibels[name] + DECIBELS_PER_BIT * (bits - bits[-1])
    axes.plot(bits, line, "--", color=COLOURS["muted"], label="6.02 dB per bit")
    for family, members in families.items():
        x, y = [r.scheme.bits_per_element for r in members], [r.decibels[name] for r in members]
        axes.plot(x, y, MARKERS[family], color=COLOURS[members[0].scheme.colour], label=family)
    axes.set(xlabel="stored (bits per element)", ylabel="signal to noise (dB)", ylim=(0, 50))


def as_table(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the cells of the table."""
    head = ["format", "bits per element", *(f"{name} (dB)" for name in rows[0].decibels)]
    cells = [[r.scheme.label, f"{r.scheme.bits_per_element:g}", *map(in_words, r.decibels.values())] for r in rows]
    return head, cells


def in_words(ratio: float) -> str:
    """Return decibels with two digits; the real tensors are stored in FP16, which therefore keeps them as they are."""
    return "exact" if np.isinf(ratio) else f"{ratio:.2f}"


def predicted_decibels(n_steps: int, x: np.ndarray, is_symmetric: bool = True) -> float:
    """Return what a uniform quantiser with `n_steps` steps from zero to amax, or from end to end, should reach.

    The error of a step s is spread evenly, so its mean square is s²/12; s² is averaged over the groups of 32.
    The one element (symmetric) or the two (affine) that set the scale are exact.
    """
    groups = x.astype(np.float64).reshape(-1, UE8M0_GROUP_LENGTH)
    span = np.abs(groups).max(axis=1) if is_symmetric else np.ptp(groups, axis=1)
    n_exact = 1 if is_symmetric else 2
    noise = (span**2).mean() / n_steps**2 / 12 * (1 - n_exact / UE8M0_GROUP_LENGTH)
    return float(10 * np.log10((groups**2).mean() / noise))
