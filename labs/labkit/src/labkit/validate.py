"""`labkit validate NOTEBOOK`: run the visible cases of a lab in a fresh kernel and say what they show.

Exit status: 0 all visible cases pass, 1 some do not, 2 the file is not a lab's notebook,
3 this machine cannot run it, 64 wrong usage, 130 interrupted.
"""

import argparse
import contextlib
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from labkit.visible import Reply, VisibleCheck

PASSED, FAILED, NOT_A_LAB, OUR_FAILURE, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 3, 64, 130
CELL_SECONDS = 30
KERNEL_CELL_SECONDS = 120  # where cells wait for compilers: on a busy machine a few seconds become many
COLLECTED = (("submitted",), ("autograded",))  # COURSE/submitted/STUDENT/LAB/NOTEBOOK
FRAME = re.compile(r"Cell In\[\d+\], line (\d+)(?:, in (\w+))?")
NOT_WRITTEN = re.compile(r"(\w+): replace this line by your answer")
NO_LOOP = re.compile(r"not attempted: write the loop of (\w+)")  # in what a compiler says of a kernel
EXAMPLE = "example:\n  labkit validate lab02_formats.ipynb"


@dataclass(frozen=True)
class Finding:
    """The result of one visible check: "passed", "failed", "not attempted", "timed out", …, and why."""

    check: "VisibleCheck"
    status: str
    message: str = ""


@dataclass(frozen=True)
class Examination:
    """What running a notebook showed: a finding for each visible check, and notes on other cells."""

    findings: list[Finding]
    notes: list[str]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line and end with the status of wrong usage."""
        self.print_usage(sys.stderr)
        self.exit(WRONG_USAGE, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options = _parser().parse_args(arguments)
    path = Path(options.notebook)
    if refusal := _refusal(path):
        return _complain(refusal, WRONG_USAGE)
    try:
        from labkit.visible import NoKernelError, NotALabError
    except ImportError as error:
        return _complain(f"expected nbclient, nbformat and ipykernel beside labkit, got: {error}", OUR_FAILURE)
    try:
        examined = examine(path, options.seconds)
    except NotALabError as error:
        return _complain(f"{path.name}: {error}", NOT_A_LAB)
    except (NoKernelError, OSError) as error:
        return _complain(f"expected a kernel to run {path.name}, got: {error}; install ipykernel", OUR_FAILURE)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    print(describe(examined))
    return PASSED if all(finding.status == "passed" for finding in examined.findings) else FAILED


def examine(path: Path, seconds: int | None = None) -> Examination:
    """Run a notebook and return what its visible checks show; the file is not changed.

    Without a limit a cell has 30 seconds, or 120 in a notebook of kernels, whose runner is compiled before.
    """
    from labkit.visible import find_checks, read_notebook, run_cells

    notebook = read_notebook(path)
    checks = find_checks(notebook)
    usual = CELL_SECONDS
    if any(cell.cell_type == "code" and "labkit.cuda" in cell.source for cell in notebook.cells):
        usual = KERNEL_CELL_SECONDS
        _compile_runner()
    replies = run_cells(notebook, path.resolve().parent, seconds or usual)
    graded = {check.index for check in checks}
    stopped = {i: reply for i, reply in replies.items() if reply.kind in ("timed out", "crashed") and i not in graded}
    notes = [f"Cell {index + 1} of the notebook was left out: {reply.text}." for index, reply in stopped.items()]
    return Examination([_finding(notebook, check, replies) for check in checks], notes)


def _compile_runner() -> None:
    """Compile what the first kernel would wait for; what is missing the kernel says itself."""
    from labkit.cuda import CudaError, build, gpu

    if gpu.cupy_module() is None:
        with contextlib.suppress(CudaError):
            build.warm_up()


def describe(examined: Examination) -> str:
    """Return a table of the tasks, then the message of each check that does not pass."""
    findings = examined.findings
    tasks = list(dict.fromkeys(finding.check.task for finding in findings))
    width = max(map(len, tasks))
    lines = [f"{'task':<{width}}  cases   result"]
    for task in tasks:
        own = [finding for finding in findings if finding.check.task == task]
        passed = sum(finding.status == "passed" for finding in own)
        lines.append(f"{task:<{width}}  {passed} of {len(own)}  {_worst(own)}")
    for finding in findings:
        if finding.message:
            lines += ["", f"{finding.check.id}: {finding.status}", *_indented(finding.message)]
    passed = sum(finding.status == "passed" for finding in findings)
    lines += ["", *examined.notes] if examined.notes else []
    lines += ["", f"{passed} of {len(findings)} visible checks pass. The grader has more cases of the same kind."]
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="labkit", description="Tools for the notebooks of the labs.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    validate = commands.add_parser(
        "validate",
        help="run the visible cases of a lab's notebook",
        description="Run a lab's notebook in a fresh kernel, as it stands on disk, and say which visible cases pass.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    validate.add_argument("notebook", metavar="NOTEBOOK", help="your copy of the lab, saved")
    validate.add_argument(
        "--seconds",
        type=_positive,
        help=f"how long one cell may take (default: {CELL_SECONDS}, with kernels {KERNEL_CELL_SECONDS})",
    )
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)


def _refusal(path: Path) -> str:
    """Return why a path cannot be validated, empty if it can."""
    if not path.is_file():
        return f"{path}: expected a notebook, got {'a folder' if path.is_dir() else 'no such file'}"
    whole = path.resolve()
    if whole.parts[-4:-3] in COLLECTED or (whole.parent / "timestamp.txt").exists():
        return (
            f"{path}: expected your own notebook, got a collected submission, which would run unguarded; "
            f"use: autograder check {shlex.quote(str(path))} --lab {whole.parent.name}"
        )
    return ""


def _finding(notebook: "NotebookNode", check: "VisibleCheck", replies: dict[int, "Reply"]) -> Finding:
    from labkit.visible import is_untouched

    if check.problem or check.index is None:
        return Finding(check, check.problem, "Take this cell again from the released notebook; your answers can stay.")
    reply = replies.get(check.index)
    if reply is None:
        return Finding(check, "edited", "The cell is no code cell any more: take it again from the released notebook.")
    if reply.kind == "ok":
        return Finding(check, "passed")
    if is_untouched(notebook, check.task):
        return Finding(check, "not attempted")
    if reply.kind != "error":
        return Finding(check, reply.kind, f"{reply.text[0].upper()}{reply.text[1:]}.")
    return Finding(check, "failed", _message(notebook, check, reply, replies))


def _message(notebook: "NotebookNode", check: "VisibleCheck", reply: "Reply", replies: dict[int, "Reply"]) -> str:
    """Return the check's own words; for another error, where it came from."""
    if reply.name == "Mismatch":
        return reply.text.strip("\n")
    missing = NOT_WRITTEN.match(reply.text) if reply.name == "NotImplementedError" else NO_LOOP.search(reply.text)
    if missing:
        return f"It needs {missing[1]}, which is not written yet."
    answers = [index for index, cell in enumerate(notebook.cells) if _grade_id(cell) == check.task]
    for broken in [replies[index] for index in answers if index in replies and replies[index].kind != "ok"]:
        why = f"{broken.name}: {broken.text}" if broken.kind == "error" else broken.text
        return f"The answer cell of {check.task} does not run: {why}"
    frames = [match for line in reply.traceback for match in FRAME.finditer(line)]
    inside = [frame for frame in frames if frame[2]]
    place = f" (line {inside[-1][1]} of the cell of {inside[-1][2]})" if inside else ""
    return f"{reply.name}: {reply.text}{place}"


def _grade_id(cell: "NotebookNode") -> str:
    metadata = cell.metadata.get("nbgrader")
    return str(metadata.get("grade_id", "")) if isinstance(metadata, dict) else ""


def _worst(findings: Sequence[Finding]) -> str:
    """Return one word for a task: the first status that is not "passed"."""
    return next((finding.status for finding in findings if finding.status != "passed"), "passed")


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _complain(text: str, status: int) -> int:
    print(f"labkit validate: {text}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
