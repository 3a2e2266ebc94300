"""Planted answers: what people get wrong, and right in another way, one cell each.

`solutions/planted/labNN_topic.py` is a percent script. `# %% wrong="task" name="…" loses="check check"`
says which checks name the mistake; `# %% right="task" name="…"` loses none.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext

from autograder.errors import CourseError


@dataclass(frozen=True)
class Planted:
    """One answer to one task; `loses` are the checks it loses when all else is solved."""

    task: str
    name: str
    is_right: bool
    loses: tuple[str, ...]
    source: str

    @property
    def mistake(self) -> str:
        """The mistake in words: the first line, a comment."""
        return self.source.lstrip().splitlines()[0].lstrip("# ")


def read_planted(path: Path) -> list[Planted]:
    """Return the planted answers of a lab, in order.

    Raises
    ------
    CourseError
        If the file is missing or a cell does not say what it is.
    """
    if not path.is_file():
        raise CourseError(f"planted answers: expected {path}, found none")
    cells = jupytext.read(path, fmt="py:percent").cells
    return [_planted(path, cell.metadata, cell.source) for cell in cells if cell.cell_type == "code" and cell.metadata]


def _planted(path: Path, metadata: dict[str, Any], source: str) -> Planted:
    task, name = metadata.get("wrong") or metadata.get("right"), metadata.get("name")
    loses = tuple(str(metadata.get("loses", "")).split())
    is_right = "right" in metadata
    if not task or not name or is_right == bool(loses):
        raise CourseError(
            f'{path.name}: expected wrong="task" name="…" loses="checks", or right="task" name="…", '
            f"got {dict(metadata)}"
        )
    return Planted(task, name, is_right, loses, source)
