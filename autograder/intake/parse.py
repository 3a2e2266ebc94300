"""From a notebook's bytes to its cells, however they were written: any encoding, any nbformat that is readable.

Nothing here trusts the document. What is of the wrong type counts as absent; what would cost
memory or recursion out of proportion is refused before it is parsed.
"""

import io
import json
import re
import tokenize
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from autograder.errors import SubmissionError

MAX_CELLS = 2000
MAX_BRACKETS = 1_000_000
"""Objects and lists in one document: 64 bytes each, so that a file of brackets stays below 100 MB in memory."""
MAX_COMPARED_CHARACTERS = 1 << 13
"""Longer cells are neither stubs nor pieces of an answer: reading them token by token would only cost time."""
MAX_SCANNED_CHARACTERS = 1 << 20
"""No kernel runs a longer cell, so it defines nothing."""

KINDS = {"code": "code", "markdown": "markdown", "heading": "markdown", "raw": "raw"}
DEFINITION = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
ASSIGNMENT = re.compile(r"^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
IMPORT = re.compile(r"^(?:from[ \t]+\S+[ \t]+)?import[ \t]+([^#\n]+)", re.MULTILINE)
IGNORED_TOKENS = {
    tokenize.COMMENT, tokenize.STRING, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A cell of a submission, reduced to what can matter."""

    index: int
    id: str
    grade_id: str
    kind: str
    source: str
    attachments: dict[str, dict[str, str]] = field(default_factory=dict)

    @cached_property
    def skeleton(self) -> tuple[str, ...]:
        """The code without comments, strings and layout: equal for two copies of a stub."""
        return skeleton(self.source)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that the cell gives a value to at its top level: defined, assigned or imported."""
        if len(self.source) > MAX_SCANNED_CHARACTERS:
            return frozenset()
        return defined_names(self.source) | set(ASSIGNMENT.findall(self.source)) | _imported_names(self.source)


def parse_notebook(data: bytes) -> tuple[list[Cell], list[str]]:
    """Return the cells in a notebook's bytes, and notes on how it had to be read.

    Raises
    ------
    SubmissionError
        If the bytes are no notebook, or one of a format that nothing here can convert.
    """
    notes: list[str] = []
    document = _load_json(_decode(data, notes), notes)
    raw = _cell_list(document, notes)
    if len(raw) > MAX_CELLS:
        raise SubmissionError(f"not gradable: expected at most {MAX_CELLS} cells, got {len(raw)}")
    return [_cell(index, item, notes) for index, item in enumerate(raw) if isinstance(item, dict)], notes


def defined_names(source: str) -> frozenset[str]:
    """Return the functions and classes that a cell defines at its top level."""
    return frozenset(DEFINITION.findall(source))


def skeleton(source: str) -> tuple[str, ...]:
    """Return the code of a cell without comments, strings and layout: equal for two copies of a stub."""
    if len(source) > MAX_COMPARED_CHARACTERS:
        return (source,)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return (source.strip(),)
    return tuple(token.string for token in tokens if token.type not in IGNORED_TOKENS and token.string)


def is_unfinished(source: str) -> bool:
    """Tell whether a piece of code stops inside brackets or a long string: the rest is in the next piece."""
    if len(source) > MAX_COMPARED_CHARACTERS:
        return False
    try:
        list(tokenize.generate_tokens(io.StringIO(source).readline))
    except tokenize.TokenError:
        return True
    except (IndentationError, SyntaxError):
        return False
    return False


def _decode(data: bytes, notes: list[str]) -> str:
    if not data.strip(b"\x00\t\r\n \xef\xbb\xbf\xfe\xff"):
        raise SubmissionError("not a notebook: the file is empty")
    encoding = json.detect_encoding(data)
    if encoding != "utf-8":
        notes.append("byte-order mark: left out" if encoding == "utf-8-sig" else f"read as {encoding}, expected UTF-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        notes.append("not UTF-8: read as Windows-1252")
        return data.decode("cp1252", "replace")


def _load_json(text: str, notes: list[str]) -> dict[str, Any]:
    if text.count("{") + text.count("[") > MAX_BRACKETS:
        raise SubmissionError("not gradable: the file holds too many objects; clear its outputs and submit again")
    repeated: set[str] = set()

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            repeated.update(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        return found

    try:
        document = json.loads(text, strict=False, object_pairs_hook=collect, parse_int=_integer)
    except (ValueError, RecursionError, MemoryError) as error:
        what = "nested too deep" if isinstance(error, RecursionError) else str(error)[:80]
        raise SubmissionError(
            f"not a notebook: expected JSON, got text that breaks off or is damaged ({what})"
        ) from None
    if not isinstance(document, dict):
        raise SubmissionError(f"not a notebook: expected a JSON object, got {type(document).__name__}")
    if repeated:
        notes.append(f"keys written twice, the last one counts: {', '.join(sorted(repeated))[:80]!a}")
    return document


def _integer(digits: str) -> int:
    return int(digits) if len(digits) < 20 else 0  # no number of a notebook matters, a long one costs time


def _cell_list(document: dict[str, Any], notes: list[str]) -> list[Any]:
    """Return the cells as they are written, from nbformat 4, from 3 and older, or from a 5 that looks like 4."""
    major = document.get("nbformat")
    cells = document.get("cells")
    if isinstance(cells, list) and (major == 4 or _looks_like_4(cells)):
        if major != 4:
            notes.append(f"nbformat {_shown(major)}, expected 4: read as 4")
        elif isinstance(minor := document.get("nbformat_minor"), int) and minor > 5:
            notes.append(f"nbformat 4.{_shown(minor)}, newer than 4.5: read as 4.5")
        return cells
    worksheets = document.get("worksheets")
    if isinstance(worksheets, list) and major in (None, 2, 3):
        notes.append(f"nbformat {_shown(major)}, expected 4: converted")
        return [cell for sheet in worksheets if isinstance(sheet, dict) for cell in _list(sheet.get("cells"))]
    if isinstance(major, int) and major > 4:
        raise SubmissionError(f"not gradable: nbformat {_shown(major)} does not convert to 4; save it as nbformat 4")
    raise SubmissionError("not a notebook: expected a list of cells, got none")


def _looks_like_4(cells: list[Any]) -> bool:
    return all(
        isinstance(cell, dict) and _text(cell.get("cell_type")) in KINDS and isinstance(cell.get("source"), str | list)
        for cell in cells
    )


def _cell(index: int, item: dict[str, Any], notes: list[str]) -> Cell:
    source = item.get("source", item.get("input", ""))
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    kind = item.get("cell_type")
    if kind == "heading" and isinstance(source, str):
        level = item.get("level")
        source = "#" * (level if isinstance(level, int) and 1 <= level <= 6 else 1) + " " + source
    metadata = _dict(item.get("metadata"))
    return Cell(
        index,
        _text(item.get("id")),
        _text(_dict(metadata.get("nbgrader")).get("grade_id")),
        KINDS.get(_text(kind), "raw"),
        _well_formed(_text(source), index, notes),
        _attachments(item.get("attachments")),
    )


def _well_formed(source: str, index: int, notes: list[str]) -> str:
    clean = source.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    if "?" in clean and clean.count("?") != source.count("?"):
        notes.append(f"cell {index + 1}: half characters were replaced by '?'")
    return clean


def _attachments(given: Any) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for name, bundle in _dict(given).items():
        contents = {mime: data for mime, data in _dict(bundle).items() if isinstance(data, str)}
        if contents:
            found[_text(name).encode("utf-8", "replace").decode("utf-8")] = contents
    return found


def _imported_names(source: str) -> set[str]:
    found = set()
    for group in IMPORT.findall(source):
        found |= {part.split(" as ")[-1].strip(" ()\t") for part in group.split(",")}
    return found


def _shown(value: Any) -> str:
    return f"{str(value)[:20]!a}"


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
