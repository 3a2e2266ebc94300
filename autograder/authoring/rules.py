"""Rules over a whole lab: ids, points and headings agree with the registered checks."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from autograder.authoring.names import bound_names
from autograder.authoring.source import Cell
from autograder.checks import Registry
from autograder.errors import CourseError
from autograder.lab import Header

HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*$")
POINTS = re.compile(r"\((\d+(?:\.\d+)?) points?\)")
FENCE = re.compile(r"^\s*(```|~~~|:::)")


@dataclass(frozen=True)
class Heading:
    """A heading of a text cell: its level, its words, and the points that it shows."""

    level: int
    words: str
    points: float | None
    cell: Cell


def headings(cell: Cell) -> Iterator[Heading]:
    """Yield the headings of a text or task cell; lines inside fences are no headings."""
    fenced = False
    for line in cell.text.splitlines():
        fenced ^= bool(FENCE.match(line))
        match = HEADING.match(line)
        if match and not fenced and "MARK SCHEME" not in line:
            points = POINTS.search(match[2])
            words = POINTS.sub("", match[2]).replace("`", "").strip()
            yield Heading(len(match[1]), words, float(points[1]) if points else None, cell)


def require_pairs(source: str, cells: list[Cell], checks: Registry, header: Header) -> None:
    """Raise CourseError unless answers, checks, tasks, points and the registry name each other."""
    seen: set[str] = set()
    for cell in cells:
        if cell.role == "answer":
            seen |= {cell.name, *bound_names(ast.unparse(cell.parse()))}
            if not any(check.task == cell.name for check in checks):
                raise cell.error(f"a check {cell.name}-…", "none")
        elif cell.role == "check":
            _require_registered(cell, checks, seen)
    _require_same(source, "check", {c.name for c in cells if c.role == "check"}, {check.id for check in checks})
    _require_same(source, "task", {c.name for c in cells if c.role == "task"}, set(header.points))


def _require_registered(cell: Cell, checks: Registry, answered: set[str]) -> None:
    if cell.name not in checks:
        raise cell.error("a check that is registered", f"{cell.name!r}, which is not")
    for name in checks[cell.name].names:
        if name not in answered:
            raise cell.error(f"an answer {name!r} before its check", "none")


def _require_same(source: str, role: str, in_cells: set[str], elsewhere: set[str]) -> None:
    where = "registered" if role == "check" else "in the header's points"
    if missing := sorted(elsewhere - in_cells):
        raise CourseError(f"{source}: expected a {role} cell for each id {where}, got none for {', '.join(missing)}")
    if unknown := sorted(in_cells - elsewhere):
        raise CourseError(f"{source}: expected each {role} cell {where}, got {', '.join(unknown)}")


def require_points(cells: list[Cell], checks: Registry, header: Header) -> None:
    """Raise CourseError where a heading shows other points than its section's graded cells sum to."""
    opened: list[tuple[Heading, float]] = []
    for cell in cells:
        for heading in headings(cell) if not cell.is_code else ():
            while opened and opened[-1][0].level >= heading.level:
                _require_sum(*opened.pop())
            opened.append((heading, 0.0))
        worth = points_of(cell, checks, header)
        opened = [(heading, total + worth) for heading, total in opened]
    for heading, total in opened:
        _require_sum(heading, total)


def points_of(cell: Cell, checks: Registry, header: Header) -> float:
    """Return what a cell is worth: 0 unless it is a check or a task."""
    if cell.role == "check":
        return checks[cell.name].points
    return header.points[cell.name] if cell.role == "task" else 0.0


def _require_sum(heading: Heading, total: float) -> None:
    if heading.points is not None and abs(heading.points - total) > 1e-9:
        raise heading.cell.error(
            f"the heading {heading.words!r} to show {total:g} points, the sum of its section", f"{heading.points:g}"
        )
