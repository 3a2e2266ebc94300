"""From untrusted bytes to the released notebook with the student's cells in it.

`folder` reads what was handed in, `parse` a notebook of it; `match` says which cell is which, and `fit`
holds the rules by which cells are repaired.
"""

import unicodedata
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from nbformat import NotebookNode

from autograder.errors import SubmissionError
from autograder.intake.fit import answered, fit
from autograder.intake.folder import Submission, read_folder, read_notebook
from autograder.intake.parse import Cell, parse_notebook

__all__ = ["Intake", "Submission", "read_folder", "read_notebook", "take_in"]


@dataclass
class Intake:
    """What the kernel will run: a repaired notebook, the files beside it, and what was repaired."""

    notebook: NotebookNode
    files: dict[str, bytes]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Candidate:
    """A notebook of the submission that could be read."""

    path: str
    cells: list[Cell]
    notes: list[str]
    answers: int


def take_in(submission: Submission, released: NotebookNode, name: str) -> Intake:
    """Fit a submission into the released notebook of the lab called `name`.

    The notebook with the lab's name counts, or the one with the most answers if that one
    has none. Files beside it go with it, by their path relative to it.

    Raises
    ------
    SubmissionError
        If no notebook of the submission can be read as one of this lab; the text says why.
    """
    notes = list(submission.notes)
    chosen = _choose(submission, released, name, notes)
    notebook, repairs = fit(chosen.cells, released)
    files = _files_beside(submission, chosen.path)
    return Intake(notebook, files, notes + chosen.notes + repairs)


def _choose(submission: Submission, released: NotebookNode, name: str, notes: list[str]) -> _Candidate:
    paths = sorted(path for path in submission.files if path.lower().endswith(".ipynb"))
    found, problems = [], []
    for path in paths:
        try:
            found.append(_read(path, submission.files[path], released))
        except SubmissionError as problem:
            problems.append(f"{path!a}: {problem}")
    if not found:
        raise SubmissionError("; ".join(problems) or _nothing(name, submission))
    notes += problems
    wanted = f"{name}.ipynb"
    chosen = max(found, key=lambda candidate: _preference(candidate, wanted))
    if _base(chosen.path) != wanted:
        notes.append(f"the notebook is called {chosen.path!a}, expected {wanted}: taken")
    if others := [candidate.path for candidate in found if candidate is not chosen]:
        notes.append(f"{len(found)} notebooks, {chosen.path!a} counts; left out: {', '.join(map(ascii, others))}")
    return chosen


def _read(path: str, data: bytes, released: NotebookNode) -> _Candidate:
    cells, notes = parse_notebook(data)
    n_answers = answered(cells, released)
    if n_answers is None:
        raise SubmissionError("no cell of this lab is in it; is it another lab's notebook?")
    return _Candidate(path, cells, notes, n_answers)


def _preference(candidate: _Candidate, wanted: str) -> tuple[bool, int, bool, int]:
    """Return what makes one notebook the one that is meant: name with answers, answers, name, short path."""
    is_named = _base(candidate.path) == wanted
    return is_named and candidate.answers > 0, candidate.answers, is_named, -len(candidate.path)


def _base(path: str) -> str:
    return unicodedata.normalize("NFC", PurePosixPath(path).name)


def _nothing(name: str, submission: Submission) -> str:
    left_out = "; ".join(note for note in submission.notes if ".ipynb" in note)
    return f"no notebook: expected {name}.ipynb, got {left_out or f'{len(submission.files)} other files'}"


def _files_beside(submission: Submission, notebook: str) -> dict[str, bytes]:
    """Return what is no notebook, with the notebook's own folder as the root."""
    root = PurePosixPath(notebook).parent
    beside = {}
    for path, data in submission.files.items():
        if not path.lower().endswith(".ipynb"):
            place = PurePosixPath(path)
            beside[str(place.relative_to(root) if place.is_relative_to(root) else place)] = data
    return beside
