"""From a lab's source to the instructor's notebook, which nbgrader turns into the released one.

Ids: a graded cell's is its grade_id; the import cell's is `imports`; others are numbered in
their section, `<section>-text-1`, `<section>-run-1`. After a task cell, which a person marks,
comes a text cell for the student's answer: its id is `<task>-answer`, and it has no metadata of
nbgrader's (whose format knows no ungraded Markdown answer), so nbgrader leaves it alone,
formgrader shows it under the task, and intake keeps what stands in it.

The notebook's metadata has `lab: {name, checks}`, by which `labkit validate` knows what is missing.
"""

import ast
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import nbformat
from nbformat import NotebookNode, v4

from autograder.authoring.names import Import, imports_of, render_imports
from autograder.authoring.reference import Module, find_module, solution_text
from autograder.authoring.rules import headings, points_of, require_pairs, require_points
from autograder.authoring.scope import REFERENCE, Scope, import_names
from autograder.authoring.source import Cell, bound_as, read_source
from autograder.checks import Registry
from autograder.course import Course
from autograder.errors import CourseError
from autograder.lab import Header, load_checks, read_header

ANSWER_TEXT = "*Your answer goes here.*"
ANSWER_SUFFIX = "-answer"
IMPORTS = "imports"
SLUG_LENGTH = 40
KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


@dataclass
class Assembly:
    """The cells of a lab while they become nodes of a notebook."""

    course: Course
    header: Header
    checks: Registry
    scope: Scope
    section: str = "start"
    numbers: Counter[str] = field(default_factory=Counter)


def assemble(course: Course, name: str) -> NotebookNode:
    """Return the instructor's notebook of a lab: solved, with nbgrader's metadata.

    Raises
    ------
    CourseError
        If source, reference and checks do not agree; the message names file and cell.
    """
    path = course.solutions / f"{name}.py"
    header, checks = read_header(path), load_checks(course.solutions / "checks" / f"{name}.py")
    cells = with_import_cell(read_source(path))
    require_pairs(path.name, cells, checks, header)
    require_points(cells, checks, header)
    packages = frozenset(package.replace("-", "_") for package in header.packages)
    assembly = Assembly(course, header, checks, Scope(name, packages, course.labs / "labkit" / "src"))
    return _notebook(assembly, cells, name)


def with_import_cell(cells: list[Cell]) -> list[Cell]:
    """Return the cells with an import cell as the first code cell: the source's own or a new one."""
    first = next((index for index, cell in enumerate(cells) if cell.is_code), len(cells))
    if first < len(cells) and cells[first].role == "run" and import_names(cells[first].parse()):
        return cells
    where = cells[first].where if first < len(cells) else "import cell"
    return [*cells[:first], Cell("run", "", "", where), *cells[first:]]


def _notebook(assembly: Assembly, cells: list[Cell], name: str) -> NotebookNode:
    imports_at = next(index for index, cell in enumerate(cells) if cell.is_code)
    for found_name, found in import_names(cells[imports_at].parse()).items():
        assembly.scope.add_import(cells[imports_at], found_name, found)
    nodes: list[NotebookNode | None] = []
    for index, cell in enumerate(cells):
        nodes.append(None if index == imports_at else _node(assembly, cell))
        if cell.role == "task":
            nodes.append(v4.new_markdown_cell(ANSWER_TEXT, id=cell.name + ANSWER_SUFFIX))
        if index == imports_at:
            _resolve_rest(assembly.scope, cell)
    whole = [node or _import_node(assembly.scope, cells[imports_at]) for node in nodes]
    _require_unique(name, whole)
    metadata = {**KERNEL, "lab": {"name": name, "checks": [check.id for check in assembly.checks]}}
    return nbformat.from_dict({"cells": whole, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def _node(assembly: Assembly, cell: Cell) -> NotebookNode:
    if cell.role in ("text", "task"):
        return _text_node(assembly, cell)
    text = _solved(assembly, cell) if cell.role == "answer" else cell.text
    if cell.role != "answer" or _reference_of(cell) is None:
        assembly.scope.resolve_cell(cell, text)
    assembly.scope.leave(cell, text)
    if cell.role == "check" and ast.get_docstring(cell.parse()) is None:
        raise cell.error("a docstring that says what is checked, first", "none")
    if cell.role == "run":
        return v4.new_code_cell(text, id=_free_id(assembly, "run"))
    return v4.new_code_cell(text, id=cell.name, metadata={"nbgrader": _nbgrader(assembly, cell)})


def _text_node(assembly: Assembly, cell: Cell) -> NotebookNode:
    for heading in headings(cell):
        assembly.section = re.sub(r"[^a-z0-9]+", "-", heading.words.lower()).strip("-")[:SLUG_LENGTH] or "section"
    if cell.role == "task":
        return v4.new_markdown_cell(cell.text, id=cell.name, metadata={"nbgrader": _nbgrader(assembly, cell)})
    return v4.new_markdown_cell(cell.text, id=_free_id(assembly, "text"))


def _solved(assembly: Assembly, cell: Cell) -> str:
    """Return the solved text of an answer cell, from the reference or from the cell itself."""
    reference = _reference_of(cell)
    if reference is not None:
        module = find_module(assembly.course.solutions, reference.module, str(reference.name))
        text = solution_text(module, [str(reference.name)])
        assembly.scope.resolve_reference(cell, module, str(reference.name), text)
        return text
    module = Module(cell.text, cell.where)
    names = [name for name in module.definitions if not name.startswith("_")]
    if bound_as(cell.name, names) not in names:
        raise cell.error(f"an import of the reference, or a definition of {cell.name!r}", ", ".join(names) or "none")
    others = [node for node in module.tree.body if node not in module.definitions.values()]
    if others:
        raise cell.error("definitions only in an answer (imports go to the import cell)", ast.unparse(others[0]))
    return solution_text(module, names)


def _reference_of(cell: Cell) -> Import | None:
    """Return the import by which an answer cell names its reference, None if the cell is the answer itself."""
    body = cell.parse().body
    found = [found for node in body for _, found in imports_of(node)]
    if not any(item.root == REFERENCE for item in found):
        return None
    if len(body) != 1 or len(found) != 1 or found[0].name not in (cell.name, cell.name.upper()) or found[0].alias:
        rule = f"`from {REFERENCE} import {cell.name}` and nothing else, or its constant {cell.name.upper()}"
        raise cell.error(rule, cell.text.strip())
    return found[0]


def _nbgrader(assembly: Assembly, cell: Cell) -> dict[str, Any]:
    """Return nbgrader's metadata of a cell; a check and a task are locked and carry points."""
    metadata: dict[str, Any] = {
        "schema_version": 3,
        "grade_id": cell.name,
        "grade": cell.role == "check",
        "solution": cell.role == "answer",
        "locked": cell.role != "answer",
        "task": cell.role == "task",
    }
    if cell.role != "answer":
        points = float(points_of(cell, assembly.checks, assembly.header))
        metadata["points"] = int(points) if points.is_integer() else points
    return metadata


def _free_id(assembly: Assembly, kind: str) -> str:
    stem = f"{assembly.section}-{kind}"
    assembly.numbers[stem] += 1
    return f"{stem}-{assembly.numbers[stem]}"


def _rest_of_import_cell(cell: Cell) -> str:
    """Return the import cell's text without its import statements."""
    lines = cell.text.splitlines()
    for node in cell.parse().body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join(lines).strip()


def _resolve_rest(scope: Scope, cell: Cell) -> None:
    rest = _rest_of_import_cell(cell)
    scope.resolve_cell(cell, rest)
    scope.leave(cell, rest)


def _import_node(scope: Scope, cell: Cell) -> NotebookNode:
    parts = [render_imports(scope.imports.values()), _rest_of_import_cell(cell)]
    return v4.new_code_cell("\n\n".join(part for part in parts if part), id=IMPORTS)


def _require_unique(name: str, nodes: list[NotebookNode]) -> None:
    repeated = [id for id, count in Counter(node.id for node in nodes).items() if count > 1]
    if repeated:
        raise CourseError(f"{name}: expected each cell id once, got {', '.join(repeated)}; rename a heading or a task")
