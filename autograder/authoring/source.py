"""Reading a lab's source: a percent script becomes cells with a role, or an error that says where.

A cell's header carries at most one of `answer`, `check` and `task`:

    # %% [markdown]                    text
    # %%                               run: a free cell, released as it stands
    # %% answer="encode_e2m1"          answer: an import of the reference, or the answer itself
    # %% check="encode_e2m1-ties"      check: a docstring and the visible cases
    # %% [markdown] task="explain-why" task: text, then a mark scheme; marked by a person

An answer that is a constant, such as the text of a kernel, has the constant's name in lower case as its id:
`answer="quantise_pack"` is the cell of `QUANTISE_PACK`, and `quantise_pack-ties` one of its checks.
"""

import ast
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

import jupytext
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from autograder.checks import CHECK_ID
from autograder.errors import CourseError

ROLES = ("answer", "check", "task")
LAYOUT = ("lines_to_next_cell", "lines_to_end_of_cell_marker", "cell_marker")  # jupytext notes how a file looks
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
TASK_ID = re.compile(r"[a-z][a-z0-9_]*-[a-z0-9_]+")
MARKERS = ("SOLUTION", "HIDDEN TESTS", "MARK SCHEME")
MARKER = re.compile(r"\b(BEGIN|END) (" + "|".join(MARKERS) + r")\b")
IN_KERNEL = re.compile(r"^[ \t]*// ### (?:BEGIN|END) SOLUTION$", re.MULTILINE)  # the author's own, in a kernel's text
AUTOTEST = re.compile(r"\b(AUTOTEST|HASHED)\b")


@dataclass(frozen=True)
class Cell:
    """One cell of a lab's source. `name` is the id that its role gives it, empty without one."""

    role: str
    name: str
    text: str
    where: str

    @property
    def is_code(self) -> bool:
        """Whether the kernel runs the cell."""
        return self.role in ("run", "answer", "check")

    def error(self, expected: str, got: str) -> CourseError:
        """Return an error that names file and cell."""
        return CourseError(f"{self.where}: expected {expected}, got {got}")

    def parse(self) -> ast.Module:
        """Return the syntax tree of a code cell; IPython's magics count as calls.

        Raises
        ------
        CourseError
            If the cell is not Python.
        """
        return self.parse_text(self.text)

    def parse_text(self, text: str) -> ast.Module:
        """Return the syntax tree of a text that stands in this cell of the built notebook."""
        try:
            tree: ast.Module = ast.parse(TransformerManager().transform_cell(text))
            return tree
        except SyntaxError as error:
            raise self.error(
                "Python", f"{error.msg} in its line {error.lineno}: {(error.text or '').strip()}"
            ) from None


def bound_as(task: str, names: Container[str]) -> str:
    """Return the name that the answer to a task binds, given those that are there: its own, or its constant's."""
    return task.upper() if task not in names and task.upper() in names else task


def read_source(path: Path) -> list[Cell]:
    """Return the cells of a lab's source.

    Raises
    ------
    CourseError
        If a cell has an unknown attribute, a bad or repeated id, or a marker out of place.
    """
    nodes = [node for node in jupytext.read(path, fmt="py:percent").cells if not _is_header(node)]
    cells = [_read_cell(node, f"{path.name}: cell {number}") for number, node in enumerate(nodes, 1)]
    _refuse_repeated(cells)
    return cells


def _is_header(node: NotebookNode) -> bool:
    return bool(node.cell_type == "raw" and node.source.startswith("---"))


def _read_cell(node: NotebookNode, place: str) -> Cell:
    given = {key: value for key, value in node.metadata.items() if key not in LAYOUT}
    role = next((role for role in ROLES if role in given), "run" if node.cell_type == "code" else "text")
    name = str(given.pop(role, ""))
    cell = Cell(role, name, node.source.strip("\n"), f'{place} ({role}="{name}")' if name else f"{place} ({role})")
    if given:
        raise cell.error(f"at most one of {', '.join(ROLES)} in its header", ", ".join(map(repr, given)))
    if node.cell_type == "raw" or (node.cell_type == "code") != cell.is_code:
        kind = "a code cell" if cell.is_code else "a [markdown] cell"
        raise cell.error(kind, f"a {node.cell_type} cell")
    _refuse_bad_id(cell)
    _refuse_bad_markers(cell)
    return cell


def _refuse_bad_id(cell: Cell) -> None:
    pattern = {"answer": NAME, "check": CHECK_ID, "task": TASK_ID}.get(cell.role)
    if pattern and not pattern.fullmatch(cell.name):
        form = {"answer": "the name of a function", "check": "<task>-<property>", "task": "<verb>-<subject>"}[cell.role]
        raise cell.error(f"an id of the form {form}", repr(cell.name))


def _refuse_bad_markers(cell: Cell) -> None:
    text = IN_KERNEL.sub("", cell.text) if cell.role == "answer" else cell.text
    found = [" ".join(match.groups()) for match in MARKER.finditer(text)]
    wanted = ["BEGIN MARK SCHEME", "END MARK SCHEME"] if cell.role == "task" else []
    if found != wanted:
        rule = "one mark scheme between BEGIN and END" if wanted else "no marker of nbgrader (the builder writes them)"
        raise cell.error(rule, ", ".join(found) or "none")
    if cell.is_code and (autotest := AUTOTEST.search(cell.text)):
        raise cell.error("no generated test of nbgrader's", autotest[0])


def _refuse_repeated(cells: Iterable[Cell]) -> None:
    seen: dict[str, Cell] = {}
    for cell in cells:
        if cell.name and cell.name in seen:
            raise cell.error("each id once", f"{cell.name!r} again; first in {seen[cell.name].where}")
        seen[cell.name] = cell
