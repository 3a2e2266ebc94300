"""How sixteen lanes find one maximum: who hears from whom, and who knows it after each shuffle."""

from typing import Final

from labkit.formats import GROUP_LENGTH
from labkit.plotting import COLOURS
from matplotlib.axes import Axes

DISTANCES: Final = (8, 4, 2, 1)
LARGEST_LANE: Final = 3  # of the group that the chapter quantises by hand
SIZE: Final = 7.5


def lanes_that_know(n_shuffles: int) -> set[int]:
    """Return the lanes that hold the maximum after so many shuffles."""
    known = {LARGEST_LANE}
    for distance in DISTANCES[:n_shuffles]:
        known |= {lane ^ distance for lane in known}
    return known


def draw(axes: Axes) -> None:
    """Draw a row of lanes before the first and after each shuffle, and a line from each to its next partner."""
    for row, distance in enumerate(DISTANCES):
        known = lanes_that_know(row)
        for lane in range(GROUP_LENGTH):
            hears = lane in known
            axes.plot(
                [lane, lane ^ distance],
                [row, row + 1],
                color=COLOURS["exact" if hears else "grid"],
                linewidth=1.5 if hears else 0.75,
                zorder=2 if hears else 1,
            )
    for row in range(len(DISTANCES) + 1):
        known = lanes_that_know(row)
        for lane in range(GROUP_LENGTH):
            axes.plot(
                lane,
                row,
                "o",
                markersize=SIZE,
                color=COLOURS["exact"],
                markerfacecolor=COLOURS["exact"] if lane in known else "none",
                markeredgewidth=1.0,
                zorder=3,
            )
    axes.set_yticks(range(len(DISTANCES) + 1), ["read", *(f"distance {distance}" for distance in DISTANCES)])
    axes.set_xticks(range(0, GROUP_LENGTH), [str(lane) if lane % 3 == 0 else "" for lane in range(GROUP_LENGTH)])
    axes.set(xlabel="lane", ylim=(len(DISTANCES) + 0.5, -0.5))
    axes.grid(visible=False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
