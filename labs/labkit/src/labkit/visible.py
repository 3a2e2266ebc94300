"""The visible cases of a lab: finding them in a student's notebook, and running it in a fresh kernel.

A notebook's metadata lists the checks it was released with (`lab.checks`), and each check cell
carries nbgrader's checksum of its released text: so a deleted or edited check is noticed.
"""

import hashlib
import json
import logging
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
STARTUP_SECONDS = 60


class NotALabError(Exception):
    """The file holds no notebook with checks; the text says what it holds."""


class NoKernelError(Exception):
    """This Python cannot start a kernel; the text says what is missing."""


@dataclass(frozen=True)
class VisibleCheck:
    """A check cell of the notebook: where it stands, or what is wrong with it."""

    id: str
    index: int | None
    problem: str = ""

    @property
    def task(self) -> str:
        """The function that the check calls."""
        return self.id.split("-", 1)[0]


@dataclass(frozen=True)
class Reply:
    """What came of running a cell: `kind` is "ok", "error", "timed out" or "crashed"."""

    kind: str
    name: str = ""
    text: str = ""
    traceback: tuple[str, ...] = ()


def read_notebook(path: Path) -> NotebookNode:
    """Return a notebook of any nbformat.

    Raises
    ------
    NotALabError
        If the file is not a notebook.
    """
    text = path.read_bytes().decode("utf-8-sig", "replace")
    try:
        document = json.loads(text)
    except ValueError as error:
        raise NotALabError(f"expected a notebook, got a file that is not JSON ({error})") from None
    if not isinstance(document, dict) or not {"cells", "worksheets"} & set(document):
        raise NotALabError("expected a notebook, got JSON without cells")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # missing and repeated cell ids are no matter here
        try:
            return nbformat.reads(text, as_version=4)
        except (ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError) as error:
            raise NotALabError(f"expected a notebook, got one that nbformat cannot read ({error})") from None


def find_checks(notebook: NotebookNode) -> list[VisibleCheck]:
    """Return the checks that the notebook was released with, in order, the missing ones too.

    Raises
    ------
    NotALabError
        If there is neither a list of checks nor a check cell.
    """
    present: dict[str, list[int]] = {}
    for index, cell in enumerate(notebook.cells):
        if (graded := _nbgrader(cell)).get("grade") and not graded.get("solution"):
            present.setdefault(str(graded.get("grade_id")), []).append(index)
    lab = notebook.metadata.get("lab")
    listed = lab.get("checks", []) if isinstance(lab, dict) else []
    ids = list(dict.fromkeys([*map(str, listed), *present]))
    if not ids:
        raise NotALabError("expected the notebook of a lab, got one without check cells")
    return [_find_check(notebook, id, present.get(id, [])) for id in ids]


def is_untouched(notebook: NotebookNode, task: str) -> bool:
    """Return whether the answer cell of a task still holds the released text."""
    cells = [cell for cell in notebook.cells if _nbgrader(cell).get("grade_id") == task]
    return bool(cells) and all("checksum" in _nbgrader(cell) and _is_as_released(cell) for cell in cells)


def run_cells(notebook: NotebookNode, folder: Path, seconds: int) -> dict[int, Reply]:
    """Run the code cells in order in a fresh kernel; return the reply of each by its index.

    When a cell hangs or ends the kernel, that is its reply, and the notebook is run again from
    the start in another kernel without it: what does not depend on it gets its own reply.

    Raises
    ------
    NoKernelError
        If no kernel can be started.
    """
    lost: dict[int, Reply] = {}
    while True:
        replies = _run_without(notebook, set(lost), folder, seconds)
        stopped = [index for index, reply in replies.items() if reply.kind in ("timed out", "crashed")]
        lost |= {index: replies[index] for index in stopped}
        if not stopped:
            return replies | lost


def _run_without(notebook: NotebookNode, skipped: set[int], folder: Path, seconds: int) -> dict[int, Reply]:
    """Run until the end, or until a cell takes the kernel with it: its reply is then the last."""
    replies: dict[int, Reply] = {}
    client = _client(notebook, folder, seconds, replies)
    try:
        with client.setup_kernel(cleanup_kc=True, stdout=DEVNULL, stderr=DEVNULL):
            for index, cell in enumerate(notebook.cells):
                if cell.cell_type != "code" or index in skipped:
                    continue
                try:
                    client.execute_cell(cell, index)
                except CellTimeoutError:
                    return replies | {index: Reply("timed out", text=f"it did not end within {seconds} s")}
                except DeadKernelError:
                    return replies | {index: Reply("crashed", text="it ended the Python process")}
                except KeyboardInterrupt:
                    logging.getLogger("asyncio").disabled = True  # it would complain of the cell left behind
                    raise
    except (NoSuchKernel, RuntimeError) as error:
        raise NoKernelError(str(error)) from error
    return replies


def _client(notebook: NotebookNode, folder: Path, seconds: int, replies: dict[int, Reply]) -> NotebookClient:
    """Return a client with a kernel of this very Python, whatever kernels are installed beside it."""

    def keep(cell: NotebookNode, cell_index: int, execute_reply: dict[str, Any]) -> None:
        replies[cell_index] = _reply(execute_reply["content"])

    return NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[])),
        resources={"metadata": {"path": str(folder)}},
        timeout=seconds,
        startup_timeout=STARTUP_SECONDS,
        allow_errors=True,
        skip_cells_with_tag="no tag skips a check",
        on_cell_executed=keep,
    )


def _reply(content: dict[str, Any]) -> Reply:
    if content.get("status") == "ok":
        return Reply("ok")
    lines = tuple(COLOURS.sub("", str(line)) for line in content.get("traceback", ()))
    return Reply("error", str(content.get("ename", "")), str(content.get("evalue", "")), lines)


def _find_check(notebook: NotebookNode, id: str, places: list[int]) -> VisibleCheck:
    if not places:
        return VisibleCheck(id, None, "deleted")
    intact = [index for index in places if _is_as_released(notebook.cells[index])]
    return VisibleCheck(id, intact[-1]) if intact else VisibleCheck(id, places[-1], "edited")


def _nbgrader(cell: NotebookNode) -> dict[str, Any]:
    metadata = cell.metadata.get("nbgrader")
    return metadata if isinstance(metadata, dict) else {}


def _is_as_released(cell: NotebookNode) -> bool:
    """Return whether a graded cell has the text, kind and points of which nbgrader took the checksum."""
    graded = _nbgrader(cell)
    is_solution = bool(graded.get("solution"))
    is_locked = not is_solution and (bool(graded.get("grade")) or bool(graded.get("locked")))
    parts = [cell.source, cell.cell_type, bool(graded.get("grade")), is_solution, is_locked, graded.get("grade_id")]
    if graded.get("grade"):
        parts.append(float(graded.get("points", 0)))
    digest = hashlib.md5("".join(map(str, parts)).encode("utf-8"), usedforsecurity=False).hexdigest()
    return graded.get("checksum") in (None, digest)
