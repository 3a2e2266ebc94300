"""The course's plot style. A colour means one thing everywhere; markers or dashes say it a second time.

The colours suit readers who do not tell red from green (Okabe and Ito, "Color universal design"). Each occurs once
in `COLOURS`, so that a page can map them, by text, to its own for light and for dark.
"""

import sys
from collections.abc import Iterable
from typing import Final, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

COLOURS: Final = {
    "ink": "#1b1b1f",
    "muted": "#6b6b76",
    "grid": "#d9d9e0",
    "exact": "#0b0b0d",
    "e2m1": "#0072b2",
    "e4m3": "#d55e00",
    "integer": "#aa4499",
    "mxfp4": "#56b4e9",
    "replayed": "#009e73",
    "evicted": "#8c8c96",
}
"""What each colour stands for: text, secondary text, lines behind, and the course's formats and states."""

DECIBELS_PER_BIT: Final = 6.02
"""20 log10(2): what one more bit is worth to a uniform quantiser with many levels."""


class Measured(NamedTuple):
    """One scheme of a comparison: what it stores per element and how well it does."""

    scheme: str
    colour: str
    bits_per_element: float
    snr_db: float


def use_course_style() -> None:
    """Set size, font, grid and colours of every figure that follows; vector pictures in notebooks."""
    mpl.rcParams.update(
        {
            "figure.figsize": (6.4, 3.2),
            "figure.constrained_layout.use": True,
            "font.size": 11,
            "svg.fonttype": "none",
            "text.color": COLOURS["ink"],
            "axes.labelcolor": COLOURS["ink"],
            "axes.edgecolor": COLOURS["muted"],
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.prop_cycle": mpl.cycler(color=[COLOURS[name] for name in ("e2m1", "e4m3", "integer", "replayed")]),
            "grid.color": COLOURS["grid"],
            "xtick.color": COLOURS["muted"],
            "ytick.color": COLOURS["muted"],
            "legend.frameon": False,
        }
    )
    _show_vectors_in_notebooks()


def plot_snr_by_bits(rows: Iterable[Measured], axes: Axes | None = None) -> Axes:
    """Draw signal-to-noise ratio against stored bits, beside the line of 6.02 dB per bit through the best scheme."""
    axes = axes or plt.gca()
    rows = sorted(rows, key=lambda row: row.bits_per_element)
    anchor = max(rows, key=lambda row: row.snr_db)
    ends = [rows[0].bits_per_element, rows[-1].bits_per_element]
    line = [anchor.snr_db + DECIBELS_PER_BIT * (bits - anchor.bits_per_element) for bits in ends]
    axes.plot(ends, line, color=COLOURS["muted"], linestyle="--", label="6.02 dB per bit")

    for marker, scheme in zip("osD^vPX*", dict.fromkeys(row.scheme for row in rows), strict=False):
        chosen = [row for row in rows if row.scheme == scheme]
        x, y = [row.bits_per_element for row in chosen], [row.snr_db for row in chosen]
        axes.plot(x, y, marker, color=COLOURS[chosen[0].colour], label=scheme)
    axes.set(xlabel="stored (bits per element)", ylabel="signal to noise (dB)")
    axes.legend()
    return axes


def _show_vectors_in_notebooks() -> None:
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg")  # type: ignore[no-untyped-call]
