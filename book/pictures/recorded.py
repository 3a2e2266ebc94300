"""Figures that take too long for every build: measured once by a script in `bench/`, and kept in `book/recorded`."""

import functools
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "recorded"


@functools.cache
def recorded(name: str) -> dict[str, Any]:
    """Return a record; its entry `made` says by which command, when and with what."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found
