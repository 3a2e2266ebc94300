"""Imports go one way: solutions → labkit, book → fp4kv and labkit, autograder → labkit alone."""

import ast
import re
from pathlib import Path

import pytest

PRIVATE = {"fp4kv", "autograder", "solutions", "checks"}
# room: folder, names of ours that it may import
ALLOWED = {
    "labs": {"labkit"},
    "solutions/fp4kv": {"fp4kv", "labkit"},
    "solutions/checks": {"fp4kv", "labkit", "autograder.checks"},
    "autograder": {"autograder", "labkit.expect"},
    "book": {"fp4kv", "labkit", "book"},
}


def imported(path: Path) -> set[str]:
    """Return every module that a file imports, wherever in it the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def is_allowed(name: str, allowed: set[str]) -> bool:
    ours = name.split(".")[0] in PRIVATE | {"labkit"}
    return not ours or any(name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)


@pytest.mark.parametrize("room", ALLOWED)
def test_room_imports_only_what_it_may(project, room):
    wrong = {
        f"{path.relative_to(project)}: {name}"
        for path in (project / room).rglob("*.py")
        if "_build" not in path.parts
        for name in imported(path)
        if not is_allowed(name, ALLOWED[room])
    }
    assert not wrong


def autograder_rooms(project: Path) -> dict[str, set[str]]:
    """Return the autograder's rooms, each with the rooms, and the two modules above them, that it imports."""
    folder = project / "autograder"
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")}
    found = {}
    for room in rooms:
        names = {name for path in (folder / room).rglob("*.py") for name in imported(path)}
        parts = {name.split(".")[1] for name in names if name.startswith("autograder.")}
        found[room] = parts & (rooms | {"grading", "doctor"}) - {room}
    return found


def test_rule_refuses_what_it_is_there_to_refuse():
    assert not is_allowed("fp4kv.encode_e2m1", ALLOWED["autograder"])
    assert not is_allowed("labkit.given", ALLOWED["autograder"])
    assert not is_allowed("autograder.judging.judge.judge", ALLOWED["solutions/checks"])
    assert is_allowed("numpy.testing", ALLOWED["labs"])


def test_architecture_says_which_room_of_the_autograder_imports_which(project):
    rows = re.findall(r"^\| `([a-z]+)` \|[^|]*\|([^|]*)\|$", (project / "ARCHITECTURE.md").read_text(), re.M)
    told = {room: {name.split(".")[0] for name in re.findall(r"`([^`]+)`", imports)} for room, imports in rows}
    assert told == autograder_rooms(project)


def test_words_of_the_autograder_import_no_room(project):
    words = {"errors", "limits", "checks", "outcome", "course", "lab"}
    names = {name for word in words for name in imported(project / "autograder" / f"{word}.py")}
    assert {name.split(".")[1] for name in names if name.startswith("autograder.")} <= words
