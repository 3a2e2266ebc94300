"""Which bank of shared memory each lane reads from, when 32 lanes read one column of a tile."""

from typing import Final

import numpy as np
from labkit.launches import WARP
from labkit.plotting import COLOURS
from matplotlib.axes import Axes

N_BANKS: Final = 32
"""Each 4 bytes wide. Source: CUDA C++ Programming Guide, "Shared Memory"."""


def banks_of_column(row_floats: int, column: int = 0) -> np.ndarray:
    """Return for each lane the bank of element (lane, column) of a tile of float32 rows."""
    return np.asarray((np.arange(WARP) * row_floats + column) % N_BANKS)


def extra_rounds(row_floats: int) -> int:
    """Return how many rounds beyond the first it takes until every lane has read its row."""
    return int(np.bincount(banks_of_column(row_floats)).max()) - 1


def draw(axes: Axes, row_floats: int, marker: str) -> None:
    """Draw the bank of each lane."""
    axes.plot(range(WARP), banks_of_column(row_floats), marker, color=COLOURS["exact"], markersize=4)
    axes.set(xlabel=f"lane, rows of {row_floats}", xticks=range(0, WARP + 1, 8), yticks=range(0, N_BANKS + 1, 8))
    axes.set(xlim=(-1.5, 32.5), ylim=(-1.5, 32.5))
