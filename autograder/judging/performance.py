"""Run a notebook's cells once, and again in a new kernel whenever one is lost.

A cell or a call that loses its kernel costs only itself: a new kernel gets the same cells
without those that lost one, and every check's functions are bound again at their place.
Check cells are not run: they are the places where functions are bound. A lab's other cells
must not need their variables, which the builder sees to.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from autograder.checks import Check
from autograder.judging.kernel import CallEnded, Kernel, KernelLost, NoValue, TimedOut
from autograder.judging.verdict import CELL_WORDS
from autograder.lab import Lab
from autograder.limits import Limits
from autograder.native.runs import Native

MAX_KERNELS = 40
LEAST_SECONDS = 0.1


@dataclass(frozen=True)
class Step:
    """One thing to do in order: run the source of a cell, or bind the functions of a check."""

    index: int
    source: str = ""
    grade_id: str = ""
    check: Check | None = None


def steps_of(notebook: NotebookNode, lab: Lab) -> list[Step]:
    """Return the steps of a notebook; a check that has no cell is bound after the last one."""
    steps, bound = [], set()
    for index, cell in enumerate(notebook.cells):
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if grade_id in lab.checks:
            bound.add(grade_id)
            steps.append(Step(index, check=lab.checks[grade_id]))
        elif cell.cell_type == "code":
            steps.append(Step(index, cell.source, grade_id))
    rest = [check for check in lab.checks if check.id not in bound]
    return steps + [Step(len(notebook.cells), check=check) for check in rest]


class Performance:
    """One notebook in a row of kernels, at most one at a time.

    `outputs` and `notes` hold what happened before `close`; nothing is added to them after it.
    `interrupted` says that a call was stopped in this kernel, so that it may be half-way in
    something, such as an import.
    """

    def __init__(
        self, steps: list[Step], files: Mapping[str, bytes], limits: Limits, prefix: Path, sandbox: str
    ) -> None:
        self.steps, self.files, self.limits, self.prefix, self.sandbox = steps, files, limits, prefix, sandbox
        self.outputs: dict[int, list[dict[str, Any]]] = {}
        self.notes: list[str] = []
        self.faults: dict[int, str] = {}
        self.n_kernels, self.n_done = 0, 0
        self.closed = self.interrupted = False
        self._kernel: Kernel | None = None
        self.texts: dict[str, str] = {}
        self.native = Native(prefix, limits, sandbox, lambda: self.deadline - time.monotonic())
        self.give_time()

    def give_time(self) -> None:
        """Start the notebook's clock anew: cells and checks have the same time each."""
        self.deadline = time.monotonic() + self.limits.notebook_seconds

    def perform(self) -> None:
        """Do every step once; a step that loses its kernel is noted and passed over."""
        try:
            while self.n_done < len(self.steps):
                step = self.steps[self.n_done]
                kernel = self._ready_kernel()
                self.n_done += 1
                self._do(kernel, step)
        except KernelLost as lost:
            left = self.steps[self.n_done :]
            self._note(f"the cells from {left[0].index + 1} on were not run: {lost}")
            self.faults |= {step.index: lost.status for step in left if step.check is None}
            self.n_done = len(self.steps)
        self.give_time()

    def close(self) -> None:
        """Draw the curtain: no output and no note leaves from here on, in this or a later kernel."""
        self.closed = True
        if self._kernel is not None:
            self._kernel.close_outputs()

    def call(self, seconds: float, **request: Any) -> Any:
        """Send a request to a kernel in which every step has been done.

        Raises
        ------
        CallEnded
            If no value came; a lost kernel is replaced at the next call.
        """
        kernel = self._ready_kernel()
        try:
            return kernel.call(max(LEAST_SECONDS, min(seconds, self.deadline - time.monotonic())), **request)
        except TimedOut:
            self.interrupted = True
            raise
        except KernelLost:
            self.drop()
            raise

    def fault_of(self, name: str) -> str:
        """Return how the cell ended that should have defined a name, or an empty text."""
        for step in self.steps:
            if step.index in self.faults and (name == step.grade_id or name in step.source):
                return self.faults[step.index]
        return ""

    def drop(self) -> None:
        """End the kernel there is; the next use starts another."""
        kernel, self._kernel, self.interrupted = self._kernel, None, False
        if kernel is not None:
            kernel.end()

    def _ready_kernel(self) -> Kernel:
        """Return a kernel in which the first `n_done` steps have been done."""
        while True:
            if time.monotonic() > self.deadline:
                raise KernelLost("not_run", f"the {self.limits.notebook_seconds:g} s of the notebook were used up")
            if self._kernel is not None:
                return self._kernel
            if self.n_kernels >= MAX_KERNELS:
                raise KernelLost("not_run", f"{MAX_KERNELS} kernels were lost")
            self.n_kernels += 1
            self._kernel = Kernel(self.files, self.limits, self.prefix, self.sandbox, listen=not self.closed)
            for step in self.steps[: self.n_done]:
                if self._kernel is not None:
                    self._do(self._kernel, step)

    def _do(self, kernel: Kernel, step: Step) -> None:
        if step.index in self.faults:
            return
        try:
            if step.check is not None:
                kernel.bind(step.check.id, (*step.check.names, *step.check.constants))
            else:
                self._run_cell(kernel, step)
        except NoValue:
            self.drop()  # a kernel that cannot even bind is of no use to the checks
        except CallEnded as ended:
            self.drop()
            if step.check is None:
                self._fault(step.index, ended.status, str(ended))

    def _run_cell(self, kernel: Kernel, step: Step) -> None:
        if len(step.source.encode("utf-8", "replace")) > self.limits.source_bytes:
            self._fault(step.index, "not_run", f"more than {self.limits.source_bytes} bytes of source")
            return
        seconds = max(LEAST_SECONDS, min(self.limits.cell_seconds, self.deadline - time.monotonic()))
        status, outputs = kernel.run(step.source, seconds)
        if not self.closed:
            self.outputs.setdefault(step.index, outputs)
        if status in ("timed_out", "out_of_memory"):  # passed over if a later loss makes us start again
            self._fault(step.index, status, f"it was stopped after {seconds:g} s" if status == "timed_out" else "")

    def _fault(self, index: int, status: str, text: str) -> None:
        self.faults[index] = status
        words = f"cell {index + 1} {CELL_WORDS[status]}" + (f": {text}" if text else "")
        self._note(words)
        if not self.closed:
            note = {"output_type": "stream", "name": "stderr", "text": f"[{words}]\n"}
            self.outputs.setdefault(index, []).append(note)

    def _note(self, text: str) -> None:
        if not self.closed:
            self.notes.append(text)
