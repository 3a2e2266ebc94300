"""Pictures of a launch's traffic and branches: apart from the counts, for Matplotlib takes longer to load than they."""

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


def draw_branches(report: TrafficReport, axes: Axes | None = None) -> Axes:
    """Draw for each line with branches how often warps executed them, and how often their lanes parted there."""
    axes = axes or plt.gca()
    rows = report.branches or ()
    axes.barh(range(len(rows)), [row.executed for row in rows], color=COLOURS["grid"], label="executed by warps")
    axes.barh(range(len(rows)), [row.divergent for row in rows], height=0.4, color=COLOURS["ink"], label="divergent")
    axes.set_yticks(range(len(rows)), [f"line {row.line}" for row in rows])
    axes.invert_yaxis()
    axes.set(xlabel="branches")
    axes.grid(axis="y", visible=False)
    axes.legend()
    return axes
