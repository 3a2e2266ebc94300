"""What travels between coordinator and workers: bytes, which are zips of JSON and of files.

Nothing of a student is ever pickled, and no worker learns the course's secret: a task carries the
seeds of its own checks, derived from it.
"""

import io
import json
import zipfile
from dataclasses import dataclass

import nbformat

from autograder.checks import Check
from autograder.errors import CourseError
from autograder.grading import Graded
from autograder.intake import Submission
from autograder.outcome import Outcome

TASK, FILES, OUTCOME, NOTEBOOK = "task.json", "files/", "outcome.json", "notebook.ipynb"


@dataclass(frozen=True)
class Payload:
    """One submission on its way to a worker."""

    course: str
    lab: str
    lab_version: str
    student: str
    seeds: dict[str, str]
    submission: Submission

    def seed(self, check: Check) -> bytes:
        """Return the seed of one check."""
        return bytes.fromhex(self.seeds[check.id])


def pack_task(payload: Payload) -> bytes:
    """Return a payload as bytes."""
    head = {name: getattr(payload, name) for name in ("course", "lab", "lab_version", "student", "seeds")}
    head["notes"] = payload.submission.notes
    files = {FILES + name: data for name, data in payload.submission.files.items()}
    return _zip({TASK: json.dumps(head).encode()} | files)


def unpack_task(data: bytes) -> Payload:
    """Return the payload that `pack_task` wrote."""
    parts = _unzip(data)
    head = json.loads(parts.pop(TASK))
    files = {name.removeprefix(FILES): content for name, content in parts.items()}
    return Payload(submission=Submission(files, tuple(head.pop("notes"))), **head)


def pack_graded(graded: Graded) -> bytes:
    """Return an outcome and its notebook as bytes."""
    parts = {OUTCOME: graded.outcome.to_json().encode()}
    if graded.notebook is not None:
        parts[NOTEBOOK] = nbformat.writes(graded.notebook).encode()
    return _zip(parts)


def unpack_graded(data: bytes) -> Graded:
    """Return the outcome and the notebook that `pack_graded` wrote."""
    parts = _unzip(data)
    notebook = nbformat.reads(parts[NOTEBOOK].decode(), 4) if NOTEBOOK in parts else None
    return Graded(Outcome.from_json(parts[OUTCOME]), notebook)


def _zip(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _unzip(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile:
        raise CourseError(f"payload: expected a zip, got {len(data)} other bytes") from None
