"""The traffic of a launch: what its loads, stores and atomics move, counted as a GPU counts it.

*Accesses* are counted for threads, and for warps: lanes that do the same access at the same time make one access of
the warp. In global memory it costs one transaction for each sector of 32 bytes that it touches. In shared memory the
32 banks, each 4 bytes wide, deliver one word each in a round; a *bank conflict* is a round more than the bytes need.
An access is *partial* if some lanes of its warp take no part in it. Branches are counted by a launch of their own, when
they are asked for (`labkit.cuda.branches`).

Not counted: local variables; reads of `__device__` variables and of constants, which a CPU does not tell apart; what
caches save. What is written to a `__device__` variable counts: it is global memory.
"""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Final

from labkit.cuda.branches import BranchLine

SECTOR_BYTES: Final = 32
"""The unit that global memory is moved in.

Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
"""


LANES: Final = 32
"""Threads of a warp."""


@dataclass(frozen=True)
class Counts:
    """Accesses of one kind to one memory."""

    thread_accesses: int = 0
    warp_accesses: int = 0
    bytes: int = 0
    """What the threads asked for."""
    sectors: int = 0
    """Transactions of 32 bytes with global memory; 0 for shared memory."""
    bank_conflicts: int = 0
    """Rounds beyond those that the bytes need; 0 for global memory."""
    partial: int = 0
    """Accesses of a warp in which some of its lanes take no part."""

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Counts)))

    @property
    def moved_bytes(self) -> int:
        """Return the bytes that the transactions move, wanted or not."""
        return self.sectors * SECTOR_BYTES


@dataclass(frozen=True)
class LineTraffic:
    """The traffic of one line of the source.

    The verb is `reads`, `writes` or `updates` (atomics), the space `global` or `shared`.
    """

    line: int | None
    text: str
    verb: str
    space: str
    counts: Counts


@dataclass(frozen=True)
class TrafficReport:
    """The traffic of one launch, line by line; the sums are properties."""

    kernel: str
    n_threads: int
    lines: tuple[LineTraffic, ...]
    count_branches: Callable[[], tuple[BranchLine, ...] | None] = field(default=lambda: (), repr=False, compare=False)

    @functools.cached_property
    def branches(self) -> tuple[BranchLine, ...] | None:
        """Return the branches by line, counted now; None if the arrays were too large to be kept for it."""
        return self.count_branches()

    @property
    def divergent_branches(self) -> int:
        """Return how often a warp's lanes parted."""
        return sum(line.divergent for line in self.branches or ())

    def total(self, space: str, verb: str) -> Counts:
        """Return the sum of one verb (`reads`, `writes`, `updates`) in one space (`global`, `shared`)."""
        return sum((line.counts for line in self.lines if line.space == space and line.verb == verb), Counts())

    @property
    def global_bytes(self) -> int:
        """Return the bytes asked of global memory, atomics once."""
        return sum(line.counts.bytes for line in self.lines if line.space == "global")

    @property
    def global_sectors(self) -> int:
        """Return the transactions with global memory."""
        return sum(line.counts.sectors for line in self.lines)

    @property
    def moved_bytes(self) -> int:
        """Return the bytes that the transactions with global memory move."""
        return self.global_sectors * SECTOR_BYTES

    @property
    def bank_conflicts(self) -> int:
        """Return the rounds of shared memory beyond those that its bytes need."""
        return sum(line.counts.bank_conflicts for line in self.lines)

    @property
    def bytes_per_thread(self) -> float:
        """Return the bytes of global memory that a thread asks for on average."""
        return self.global_bytes / self.n_threads

    def __str__(self) -> str:
        return table(self)


def make_report(
    kernel: str,
    n_threads: int,
    said: Iterable[dict[str, Any]],
    lines: dict[int, int | None],
    code: str,
    count_branches: Callable[[], tuple[BranchLine, ...] | None],
) -> TrafficReport:
    """Sum the runner's counts, which are for instructions, by lines of the source."""
    sums: dict[tuple[int, str, str], Counts] = {}
    for item in said:
        key = (lines.get(item["code"]) or 0, item["space"], item["verb"])
        counts = Counts(
            item["thread_accesses"],
            item["warp_accesses"],
            item["bytes"],
            item["sectors"],
            item["extra_rounds"],
            item["partial"],
        )
        sums[key] = sums.get(key, Counts()) + counts
    texts = code.split("\n")
    rows = (
        LineTraffic(line or None, texts[line - 1].strip() if line else "", verb, space, counts)
        for (line, space, verb), counts in sorted(sums.items())
    )
    return TrafficReport(kernel, n_threads, tuple(rows), count_branches)


def table(report: TrafficReport) -> str:
    """Return the report as a table of text: totals, averages for a thread, each line of the source, branches."""
    head = (
        f"{'':<16}{'by threads':>12}{'by warps':>11}{'bytes':>14}{'a thread':>10}"
        f"{'sectors':>10}{'conflicts':>11}{'partial':>9}"
    )
    rows = [f"traffic of {report.kernel}, {report.n_threads:,} threads", head]
    for space in ("global", "shared"):
        for verb in ("reads", "writes", "updates"):
            counts = report.total(space, verb)
            if counts.thread_accesses:
                rows.append(f"{space + ' ' + verb:<16}{_numbers(counts, report.n_threads)}")
    for line in report.lines:
        rows.append(f"line {line.line or '?'}: {line.text}")
        rows.append(f"{'  ' + line.space + ' ' + line.verb:<16}{_numbers(line.counts, report.n_threads)}")
    return "\n".join([*rows, *_rows_of_branches(report)])


def _rows_of_branches(report: TrafficReport) -> list[str]:
    if report.branches is None:
        return ["branches: not counted, for the arrays are too large to launch again"]
    n_warps = -(-report.n_threads // LANES)
    rows = [f"branches {'executed':>19}{'divergent':>11}{'a warp':>14}"] if report.branches else []
    for line in report.branches:
        rows.append(f"line {line.line}: {line.text}")
        rows.append(f"{line.executed:>28,}{line.divergent:>11,}{line.divergent / n_warps:>14.4g}")
    return rows


def _numbers(counts: Counts, n_threads: int) -> str:
    return (
        f"{counts.thread_accesses:>12,}{counts.warp_accesses:>11,}{counts.bytes:>14,}{counts.bytes / n_threads:>10.4g}"
        f"{counts.sectors:>10,}{counts.bank_conflicts:>11,}{counts.partial:>9,}"
    )
