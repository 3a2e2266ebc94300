"""How the points of a class are spread, as numbers that a page draws."""

from collections.abc import Sequence
from dataclasses import dataclass

BARS = 10
WIDTH, HEIGHT, BASE, TOP = 640, 200, 168, 12


@dataclass(frozen=True)
class Bar:
    """One bar: its range of points, how many are in it, and its place in the picture."""

    low: float
    high: float
    count: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Histogram:
    """The bars of a class, from zero to full marks; the last one holds full marks too."""

    bars: list[Bar]
    max_score: float
    width: int = WIDTH
    height: int = HEIGHT
    base: int = BASE

    @property
    def text(self) -> str:
        """The picture in words."""
        parts = [f"{bar.count} from {bar.low:g} to {bar.high:g}" for bar in self.bars if bar.count]
        return "students by points: " + (", ".join(parts) or "nobody graded")


def histogram(totals: Sequence[float], max_score: float, n_bars: int = BARS) -> Histogram:
    """Return the histogram of points between zero and the maximum.

    >>> [bar.count for bar in histogram([0, 0, 5, 10], 10, n_bars=2).bars]
    [2, 2]
    """
    step = max_score / n_bars if max_score else 1.0
    counts = [0] * n_bars
    for total in totals:
        counts[min(n_bars - 1, int(total / step))] += 1
    tallest, slot = max([1, *counts]), WIDTH / n_bars
    bars = []
    for index, count in enumerate(counts):
        height = (BASE - TOP - 16) * count / tallest
        low, high = round(index * step, 2), round((index + 1) * step, 2)
        bars.append(Bar(low, high, count, index * slot + 4, BASE - height, slot - 8, height))
    return Histogram(bars, max_score)
