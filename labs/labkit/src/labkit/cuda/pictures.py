"""The picture of a launch's traffic: apart from the counts, for Matplotlib loads more slowly than a kernel runs."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from labkit.cuda.traffic import TrafficReport
from labkit.plotting import COLOURS


def draw_traffic(report: TrafficReport, axes: Axes | None = None) -> Axes:
    """Draw for each line that uses global memory the bytes asked for, and those moved in sectors of 32 bytes."""
    axes = axes or plt.gca()
    rows = [line for line in report.lines if line.space == "global"]
    places = range(len(rows))
    thickness = 0.36
    axes.barh(
        [i - thickness / 2 for i in places],
        [row.counts.bytes for row in rows],
        thickness,
        color=COLOURS["ink"],
        label="asked for",
    )
    axes.barh(
        [i + thickness / 2 for i in places],
        [row.counts.moved_bytes for row in rows],
        thickness,
        facecolor="none",
        edgecolor=COLOURS["muted"],
        hatch="///",
        label="moved",
    )
    axes.set_yticks(list(places), [f"line {row.line or '?'} {row.verb}" for row in rows])
    axes.invert_yaxis()
    axes.set(xlabel="global memory (bytes)")
    axes.grid(axis="y", visible=False)
    axes.legend()
    return axes
