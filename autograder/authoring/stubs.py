"""What nbgrader puts in place of a solution: an error that names the task still to be written.

`release_preprocessors` is the list that makes the released notebook, for our builder and for
`nbgrader generate_assignment` alike.
"""

from typing import Any

from nbformat import NotebookNode
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearSolutions

BEGIN_IN_KERNEL = "// ### BEGIN SOLUTION"


class ClearAnswers(ClearSolutions):  # type: ignore[misc]  # nbgrader has no types
    """nbgrader's `ClearSolutions` with one stub for each task instead of one for all."""

    def preprocess_cell(self, cell: NotebookNode, resources: Any, cell_index: int) -> tuple[NotebookNode, Any]:
        """Cut the solutions out of a cell."""
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        self.code_stub = {"python": stub(name, cell.source)}
        cut: tuple[NotebookNode, Any] = super().preprocess_cell(cell, resources, cell_index)
        return cut


def stub(name: str, source: str) -> str:
    """Return the line that stands for the answer: Python, or C++ where the markers are in a kernel's text."""
    if BEGIN_IN_KERNEL in source:
        return f'#error "not attempted: write the loop of {name}"'
    return f'raise NotImplementedError("{name}: replace this line by your answer")'


def release_preprocessors() -> list[type]:
    """Return nbgrader's own list for a release, with our stubs."""
    usual: list[type] = GenerateAssignment.preprocessors.default_args[0]
    return [ClearAnswers if step is ClearSolutions else step for step in usual]


def configure_release(c: Any) -> None:
    """Make `nbgrader generate_assignment` cut solutions as `autograder build` does."""
    c.GenerateAssignment.preprocessors = release_preprocessors()
