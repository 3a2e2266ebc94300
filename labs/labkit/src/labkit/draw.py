"""Number lines, bytes and groups, drawn by code: the same pictures in lab and book."""

from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from labkit.formats import E2M1_MAX, E2M1_TIES, E2M1_VALUES, GROUP_LENGTH, code_fields
from labkit.plotting import COLOURS

E2M1_FIELDS = ((3, "sign"), (2, "exponent"), (1, "exponent"), (0, "mantissa"))


def draw_codes(
    points: Iterable[tuple[float, float]] = (), *, is_signed: bool = False, axes: Axes | None = None
) -> Axes:
    """Draw the number line of E2M1: values with their codes, ties, and arrows from each point to its rounded value.

    Parameters
    ----------
    points: pairs (x, what x becomes); the caller rounds.
    is_signed: whether to draw the negative half as well.
    """
    axes = axes or plt.gca()
    codes = [*range(8), *(range(9, 16) if is_signed else ())]
    values = {code: float(E2M1_VALUES[code & 7]) * (-1 if code & 8 else 1) for code in codes}
    axes.vlines(list(values.values()), 0, 0.5, color=COLOURS["e2m1"], linewidth=2)
    for code, value in values.items():
        axes.annotate(code_fields(code), (value, 0.55), rotation=90, ha="center", va="bottom", color=COLOURS["e2m1"])
    ties = np.concatenate([-E2M1_TIES, E2M1_TIES]) if is_signed else E2M1_TIES
    axes.plot(ties, np.zeros_like(ties), "|", color=COLOURS["muted"], markersize=8)
    for x, rounded in points:
        axes.annotate("", (rounded, 0.02), (x, -0.5), arrowprops={"arrowstyle": "->", "color": COLOURS["exact"]})
        axes.plot([x], [-0.5], "o", color=COLOURS["exact"], markersize=4)
    _strip(axes, xticks=[value for value in values.values() if not is_signed or value % 1 == 0], ylim=(-0.7, 1.6))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("value")
    return axes


def draw_byte(byte: int, *, axes: Axes | None = None) -> Axes:
    """Draw a byte of two E2M1 codes: bit 7 left, bit 0 right, the fields and the element of each half below."""
    if not 0 <= byte < 256:
        raise ValueError(f"byte: expected a number from 0 to 255, got {byte}")
    axes = axes or plt.gca()
    tints = {"sign": "evicted", "exponent": "e4m3", "mantissa": "e2m1"}
    for half, element in ((4, "element 2j + 1"), (0, "element 2j")):
        for bit, field in E2M1_FIELDS:
            left = 7 - (half + bit)
            colour = COLOURS[tints[field]]
            axes.add_patch(Rectangle((left + 0.04, 0), 0.92, 1, facecolor=colour, alpha=0.25, edgecolor=colour))
            axes.text(left + 0.5, 0.5, str(byte >> (half + bit) & 1), ha="center", va="center", fontweight="bold")
            axes.text(left + 0.5, 1.1, str(half + bit), ha="center", va="bottom", color=COLOURS["muted"], fontsize=9)
        axes.text(6 - half, -0.15, element, ha="center", va="top")
    _strip(axes, xticks=[], ylim=(-0.6, 1.5))
    axes.set(xlim=(0, 8), aspect="equal")
    axes.spines["bottom"].set_visible(False)
    return axes


def draw_groups(
    x: Float[np.ndarray, " n"],
    decoded: Float[np.ndarray, " n"] | None = None,
    scales: Sequence[float] | np.ndarray = (),
    *,
    axes: Axes | None = None,
) -> Axes:
    """Draw values, group by group: before (outlined), after (filled), and the largest value each scale allows."""
    axes = axes or plt.gca()
    axes.bar(range(len(x)), x, fill=False, edgecolor=COLOURS["exact"], label="before")
    if decoded is not None:
        axes.bar(range(len(x)), decoded, width=0.5, color=COLOURS["e2m1"], label="after")
    for start in range(0, len(x), GROUP_LENGTH)[1:]:
        axes.axvline(start - 0.5, color=COLOURS["muted"], linestyle=":")
    for group, scale in enumerate(scales):
        ends = (group * GROUP_LENGTH - 0.5, (group + 1) * GROUP_LENGTH - 0.5)
        axes.hlines([-E2M1_MAX * scale, E2M1_MAX * scale], *ends, color=COLOURS["e4m3"], linestyle="--")
    axes.set(xlabel="element", ylabel="value")
    axes.legend(ncols=2)
    return axes


def _strip(axes: Axes, xticks: Sequence[float], ylim: tuple[float, float]) -> None:
    axes.set(xticks=xticks, yticks=[], ylim=ylim)
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
