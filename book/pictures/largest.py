"""What becomes of the largest element of a group when its scale is rounded to E4M3."""

import fp4kv
import numpy as np
from labkit import plotting
from labkit.formats import E4M3_MIN_NORMAL, GROUP_LENGTH
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

EXPONENTS = (np.log2(6) - 9, 0)  # of amax: from where the scale leaves its floor to ordinary values
N_POINTS = 541


def change_of_largest() -> tuple[np.ndarray, np.ndarray]:
    """Return largest magnitudes, and the relative change of each in a group of which it is the only element."""
    amax = np.logspace(*EXPONENTS, N_POINTS, base=2).astype(np.float32)
    groups = np.zeros((N_POINTS, GROUP_LENGTH), np.float32)
    groups[:, 0] = amax
    return amax, fp4kv.dequantise(fp4kv.quantise_e2m1(groups))[:, 0] / amax - 1


def draw_change_of_largest(axes: Axes, amax: np.ndarray, change: np.ndarray) -> None:
    """Draw the change against the largest magnitude; losses are filled."""
    axes.axhline(0, color=plotting.COLOURS["exact"], linewidth=1)
    axes.axvline(6 * E4M3_MIN_NORMAL, color=plotting.COLOURS["muted"], linestyle=":")
    axes.plot(amax, change, color=plotting.COLOURS["e4m3"], linewidth=1.25)
    axes.fill_between(amax, change, 0, where=change < 0, color=plotting.COLOURS["e4m3"], alpha=0.3, linewidth=0)
    axes.annotate("smallest normal scale", (6 * E4M3_MIN_NORMAL * 1.06, -0.3), color=plotting.COLOURS["muted"])
    axes.set_xscale("log", base=2)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set(xlabel="largest magnitude of the group", ylabel="change when decoded")
