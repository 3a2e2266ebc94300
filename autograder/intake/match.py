"""Which cell of a submission is which cell of the release: by grade id, else cell id, else text.

A cell that was split is put together again here, so that everything after this sees whole cells.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from nbformat import NotebookNode

from autograder.intake.parse import Cell, defined_names, is_unfinished, skeleton

RETURNS = re.compile(r"^[ \t]+(?:return|yield|raise)\b", re.MULTILINE)
MAX_PIECES = 20
"""Nobody splits a cell into more; a notebook of nothing but pieces would only cost time."""
Claims = dict[int, list[Cell]]


@dataclass
class Matched:
    """The cells of a submission, and for each released position those that are it."""

    cells: list[Cell]
    claims: Claims
    notes: list[str] = field(default_factory=list)


def match(cells: list[Cell], released: list[NotebookNode]) -> Matched:
    """Return which cell is which, with split cells joined."""
    matched = Matched(cells, _claim(cells, released))
    claimed = {cell.index for claiming in matched.claims.values() for cell in claiming}
    rests = [cell for cell in cells if cell.index not in claimed and _is_rest(cell)]
    for at, claiming in matched.claims.items():
        extra = rests if is_answer(released[at]) else []
        pieces = sorted([*claiming, *extra], key=lambda cell: cell.index)
        joined = _joined(pieces) if len(claiming) <= MAX_PIECES else pieces
        if len(joined) < len(pieces):
            matched.notes.append(f"{name_of(released, at)}: was split, joined")
            kept = {cell.index: cell for cell in joined}
            dropped = {cell.index for cell in pieces} - set(kept)
            matched.cells = [kept.get(cell.index, cell) for cell in matched.cells if cell.index not in dropped]
            matched.claims[at] = [cell for cell in joined if cell not in extra]
    return matched


def is_stub(cell: Cell, released: NotebookNode) -> bool:
    """Tell whether a cell is still the code that was released; comments and docstrings may differ."""
    return defined_names(released.source) <= cell.names and cell.skeleton == skeleton(released.source)


def is_answer(cell: NotebookNode) -> bool:
    """Tell whether a released cell is the student's to write and marked through its checks."""
    return bool(_settings(cell).get("solution"))


def is_locked(cell: NotebookNode) -> bool:
    """Tell whether a released cell is always the released one."""
    return not is_answer(cell) and any(_settings(cell).get(key) for key in ("locked", "grade", "task"))


def is_check(cell: NotebookNode) -> bool:
    """Tell whether a released cell is one that the judge decides."""
    return bool(_settings(cell).get("grade")) and not is_answer(cell)


def is_task(cell: NotebookNode) -> bool:
    """Tell whether a released cell asks for an answer that a person marks."""
    return bool(_settings(cell).get("task"))


def grade_id(cell: NotebookNode) -> str:
    """Return a released cell's nbgrader id, empty where it has none."""
    return str(_settings(cell).get("grade_id", ""))


def name_of(released: list[NotebookNode], at: int) -> str:
    """Return what a note calls a released cell."""
    return grade_id(released[at]) or f"given cell {at + 1}"


def _settings(cell: NotebookNode) -> dict[str, Any]:
    settings: dict[str, Any] = cell.metadata.get("nbgrader", {})
    return settings


def _claim(cells: list[Cell], released: list[NotebookNode]) -> Claims:
    by_grade_id = {grade_id(cell): at for at, cell in enumerate(released) if grade_id(cell)}
    by_id = {cell["id"]: at for at, cell in enumerate(released) if cell.get("id")}
    found: Claims = defaultdict(list)
    strangers = []
    for cell in cells:
        at = by_grade_id.get(cell.grade_id, by_id.get(cell.id))
        if at is None:
            strangers.append(cell)
        else:
            found[at].append(cell)
    _claim_by_text(strangers, released, found)
    return {at: claiming for at, claiming in found.items() if claiming}


def _claim_by_text(strangers: list[Cell], released: list[NotebookNode], found: Claims) -> None:
    by_text: dict[str, list[int]] = defaultdict(list)
    for at, cell in enumerate(released):
        by_text[cell.source.strip()].append(at)
    answers = [at for at, cell in enumerate(released) if is_answer(cell)]
    for stranger in strangers:
        if not (text := stranger.source.strip()):
            continue
        same = by_text.get(text) or [
            at for at in answers if stranger.kind == "code" and is_stub(stranger, released[at])
        ]
        if same:
            found[next((at for at in same if not found[at]), same[-1])].append(stranger)


def _joined(pieces: Iterable[Cell]) -> list[Cell]:
    joined: list[Cell] = []
    last = -2
    for piece in pieces:
        if joined and piece.index == last + 1 and _continues(joined[-1].source, piece.source):
            joined[-1] = replace(joined[-1], source=f"{joined[-1].source}\n{piece.source}")
        else:
            joined.append(piece)
        last = piece.index
    return joined


def _continues(before: str, piece: str) -> bool:
    first = next((line for line in piece.splitlines() if line.strip()), "")
    return first[:1].isspace() or is_unfinished(before)


def _is_rest(cell: Cell) -> bool:
    """Tell whether a cell cannot stand alone: it returns, and defines nothing to return from."""
    return cell.kind == "code" and RETURNS.search(cell.source) is not None and not defined_names(cell.source)
