"""Fit a submission's cells into the released notebook.

The rules, in order. What a cell *is* follows from its grade id, else its cell id, else its text,
else its place between neighbours that are known.

1. A *locked* cell (check, task, read-only text) is always the released one. A copy of it that
   the student changed stays as a free cell just before it, so nothing that was written is lost.
2. A *split* cell is joined: a piece that begins indented, or follows a piece that breaks off
   inside brackets or a long string, continues the piece before it. Without a known identity it
   must also return something, which no cell of its own can.
3. An *answer* is what a run from top to bottom has in force when the first check of the task
   comes: the last cell before it that gives a value to the task's name, wherever it stands; else
   the last such cell anywhere; else the cell with the answer's identity. An untouched stub
   never hides an answer, and a code cell goes before one that was turned into text.
4. Any other *given* cell takes the student's text, unless it was emptied or deleted: so the
   free cell under a question holds what was written there.
5. Everything else runs as a free cell after the neighbour that it followed.
"""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import replace

import nbformat
from nbformat import NotebookNode

from autograder.intake.match import grade_id, is_answer, is_check, is_locked, is_stub, match, name_of
from autograder.intake.parse import Cell, defined_names

ADDED_ID = "added-{:04}"
ANSWERED_ELSEWHERE = "# answered in another cell"


def fit(cells: list[Cell], released: NotebookNode) -> tuple[NotebookNode, list[str]]:
    """Return the released notebook with the student's cells in it, and notes on every repair."""
    fitting = _Fitting(cells, released)
    fitting.place_locked()
    fitting.place_answers()
    fitting.place_given()
    notebook = fitting.notebook()
    return notebook, _grouped(fitting.notes)


def answered(cells: list[Cell], released: NotebookNode) -> int | None:
    """Return how many answers of the release a notebook holds; None if it is no notebook of this lab.

    It is one if any cell is a graded one of the release, by id or by text, or answers a task.
    An untouched stub is no answer.
    """
    fitting = _Fitting(cells, released)
    n_answers = fitting.count_answers()
    return n_answers if n_answers or any(grade_id(released.cells[at]) for at in fitting.claims) else None


class _Fitting:
    """The state of one fit: which cell of the submission stands for which cell of the release.

    `place` maps a released position to the student's position it was found at; `chosen` holds the
    cell whose text a released one takes; `used` the student's positions that are no free cells.
    """

    def __init__(self, cells: list[Cell], released: NotebookNode) -> None:
        matched = match(cells, released.cells)
        self.cells, self.claims, self.notes = matched.cells, matched.claims, matched.notes
        self.released: list[NotebookNode] = released.cells
        self.metadata = released.metadata
        self.place: dict[int, int] = {}
        self.chosen: dict[int, Cell] = {}
        self.used: set[int] = set()

    def _answers(self) -> list[int]:
        return [at for at, cell in enumerate(self.released) if is_answer(cell)]

    # Locked cells

    def place_locked(self) -> None:
        """Find the student's copies of each locked cell, only to know what they are."""
        for at, cell in enumerate(self.released):
            if is_locked(cell):
                self._place_locked(at, cell, self.claims.get(at, []))

    def _place_locked(self, at: int, cell: NotebookNode, copies: list[Cell]) -> None:
        name = grade_id(cell)
        same = [copy for copy in copies if copy.source.strip() == cell.source.strip() and copy.kind == cell.cell_type]
        self.used |= {copy.index for copy in same}
        if copies:
            self.place[at] = (same or copies)[0].index
        if not copies:
            self.notes.append(f"{name}: was deleted, restored")
        elif not same:
            self._note_changed(name, cell, copies[0])
        elif len(copies) > 1:
            self.notes.append(f"{name}: {len(copies)} copies, the released one counts")
        elif same[0].grade_id != name:
            self.notes.append(f"{name}: its metadata was changed or lost, restored")

    def _note_changed(self, name: str, cell: NotebookNode, copy: Cell) -> None:
        what = "type" if copy.source.strip() == cell.source.strip() else "text"
        if not copy.source.strip():
            self.notes.append(f"{name}: was emptied, restored")
        else:
            self.notes.append(f"{name}: its {what} was changed, restored")
        if what == "type" or not copy.source.strip():
            self.used.add(copy.index)

    # Answers

    def place_answers(self) -> None:
        """Choose the cell that counts for each answer, in the released order."""
        for at in self._answers():
            self._place_answer(at)

    def count_answers(self) -> int:
        """Return how many answers have a writer or a cell of their own that is no stub."""
        return sum(1 for at in self._answers() if self._writers(at) or self._own(at))

    def _place_answer(self, at: int) -> None:
        stubs = [copy for copy in self.claims.get(at, []) if is_stub(copy, self.released[at])]
        writers = self._writers(at)
        gate = self._gate(at)
        before = [copy for copy in writers if copy.index < gate]
        chosen = next(reversed(before or writers or self._own(at) or self._between(at) or stubs[:1]), None)
        if chosen is None:
            self.notes.append(f"{name_of(self.released, at)}: no answer found")
            return
        self._note_answer(at, chosen, writers, is_late=bool(writers) and not before)
        if chosen.index in self.used:
            self.chosen[at] = replace(chosen, source=ANSWERED_ELSEWHERE)
        else:
            self.place = {position: index for position, index in self.place.items() if index != chosen.index}
            self.chosen[at], self.place[at] = chosen, chosen.index
        self.used |= {chosen.index, *(stub.index for stub in stubs)}

    def _own(self, at: int) -> list[Cell]:
        """Return the cells with the answer's identity that hold more than the stub."""
        own = [copy for copy in self.claims.get(at, []) if copy.source.strip() and not is_stub(copy, self.released[at])]
        return [copy for copy in own if copy.kind == "code"] or own

    def _writers(self, at: int) -> list[Cell]:
        """Return the cells that give a value to the answer's names, in the student's order."""
        wanted = defined_names(self.released[at].source)
        own = {copy.index for copy in self.claims.get(at, [])}
        found = [
            cell
            for cell in self.cells
            if (cell.kind == "code" or cell.index in own)
            and wanted & cell.names
            and not is_stub(cell, self.released[at])
        ]
        return [cell for cell in found if cell.kind == "code"] or found

    def _gate(self, at: int) -> float:
        """Return where the student's first check after this answer stands."""
        later = (position for position in range(at + 1, len(self.released)) if is_check(self.released[position]))
        return next((self.place[position] for position in later if position in self.place), float("inf"))

    def _between(self, at: int) -> list[Cell]:
        """Return the one unknown cell of its kind between the neighbours of a cell that is not there."""
        before = max((index for position, index in self._anchors() if position < at), default=-1)
        after = min((index for position, index in self._anchors() if position > at), default=len(self.cells))
        claimed = {cell.index for claiming in self.claims.values() for cell in claiming}
        free = [
            cell
            for cell in self.cells
            if before < cell.index < after
            and cell.index not in claimed | self.used
            and cell.kind == self.released[at].cell_type
        ]
        return free if len(free) == 1 and self.place else []

    def _note_answer(self, at: int, chosen: Cell, writers: list[Cell], is_late: bool) -> None:
        name, owners = name_of(self.released, at), self.claims.get(at, [])
        if is_late:
            self.notes.append(f"{name}: its definition stands after its checks, taken")
        if len(writers) > 1:
            self.notes.append(f"{name}: {len(writers)} cells define it, the one in force at its checks counts")
        if chosen not in owners and owners:
            self.notes.append(f"{name}: defined in another cell than its own, taken")
        elif chosen not in owners:
            self.notes.append(f"{name}: its cell was found by {'the name it defines' if writers else 'its place'}")
        elif chosen.grade_id != name:
            self.notes.append(f"{name}: its metadata was changed or lost, restored")
        if chosen.kind != self.released[at].cell_type:
            self.notes.append(f"{name}: was turned into {chosen.kind}, restored")

    # Given cells that are the student's to change

    def place_given(self) -> None:
        """Let the student's text stand in each given cell that is neither locked nor an answer."""
        for at, cell in enumerate(self.released):
            if is_locked(cell) or is_answer(cell):
                continue
            copies = [copy for copy in self.claims.get(at, []) if copy.index not in self.used]
            if not copies and cell.cell_type == "markdown":
                copies = self._between(at)
            changed = [copy for copy in copies if copy.source.strip() and copy.source.strip() != cell.source.strip()]
            if not copies:
                continue
            self.used |= {copy.index for copy in copies if copy not in changed}
            kept = (changed or copies)[0]
            self.place[at] = kept.index
            if changed:
                self.chosen[at] = kept
                self.used.add(kept.index)

    # The result

    def notebook(self) -> NotebookNode:
        """Return the released cells in the released order, with the free cells among them."""
        anchors = self._anchors()
        if len(anchors) < len(self.place):
            names = [name_of(self.released, at) for at in sorted(set(self.place) - {at for at, _ in anchors})]
            self.notes.append(f"moved, run in the released order: {', '.join(names)}")
        following: dict[int, list[NotebookNode]] = defaultdict(list)
        for cell in self.cells:
            if cell.index not in self.used and cell.source.strip():
                after = max((at for at, index in anchors if index < cell.index), default=-1)
                following[after].append(_free_cell(cell))
        merged = list(following[-1])
        for at, cell in enumerate(self.released):
            merged += [self._filled(at, cell), *following[at]]
        return nbformat.from_dict(
            {"cells": merged, "metadata": dict(self.metadata), "nbformat": 4, "nbformat_minor": 5}
        )

    def _filled(self, at: int, cell: NotebookNode) -> NotebookNode:
        filled = nbformat.from_dict({**cell, "metadata": nbformat.from_dict(dict(cell.metadata))})
        if filled.cell_type == "code":
            filled.outputs, filled.execution_count = [], None
        if (chosen := self.chosen.get(at)) is None:
            return filled
        if chosen.kind == cell.cell_type or is_answer(cell):
            filled.source = chosen.source
        else:
            filled = _new_cell(chosen, str(cell.get("id")))
        if filled.cell_type == "markdown" and chosen.attachments:
            filled["attachments"] = chosen.attachments
        return filled

    def _anchors(self) -> list[tuple[int, int]]:
        """Return the (released, student's) positions that are in the same order in both: the most that are."""
        placed = sorted(self.place.items())
        tails: list[int] = []
        lengths = []
        for _, index in placed:
            length = bisect_left(tails, index)
            tails[length : length + 1] = [index]
            lengths.append(length)
        kept: list[tuple[int, int]] = []
        wanted, bound = len(tails) - 1, float("inf")
        for entry, length in zip(reversed(placed), reversed(lengths), strict=True):
            if length == wanted and entry[1] < bound:
                kept.append(entry)
                wanted, bound = wanted - 1, entry[1]
        return kept[::-1]


def _grouped(notes: list[str]) -> list[str]:
    """Return notes that say the same of several cells as one: stripped metadata would fill pages."""
    names: dict[str, list[str]] = defaultdict(list)
    for note in notes:
        name, _, text = note.partition(": ")
        names[text].append(name)
    return [f"{', '.join(named)}: {text}" for text, named in names.items()]


def _free_cell(cell: Cell) -> NotebookNode:
    return _new_cell(cell, ADDED_ID.format(cell.index))


def _new_cell(cell: Cell, cell_id: str) -> NotebookNode:
    make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
    new = make.get(cell.kind, nbformat.v4.new_raw_cell)(cell.source, id=cell_id)
    if cell.kind == "markdown" and cell.attachments:
        new["attachments"] = cell.attachments
    return new
