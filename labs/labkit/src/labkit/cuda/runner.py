"""The child process that runs a launch: a task in, arrays through a file without a name, a report out.

The child is no sandbox: a kernel runs there with this user's rights, as a program of the student's own does. What it
shields is this process, from a kernel that crashes or never ends.
"""

import contextlib
import json
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from labkit.cuda import build
from labkit.cuda.arguments import Arguments
from labkit.cuda.errors import LaunchError, RunnerError
from labkit.cuda.places import variables

SHARED_MEMORY_BYTES: Final = 48 * 1024
"""Of a block that does not ask for more, as on a GPU."""

ABSENT_VALUES: Final = (0x7F7F7F7F7F7F7F7F, 0xFF7F3D5AFF7F3D5A)
"""What a shuffle gives for a lane that takes no part: huge, then huge and negative, as float, double or integer, so
that minima and maxima come out different; and an odd number apart, so that integer sums do."""

MOST_KEPT_BYTES: Final = 64 << 20
"""Of a launch's inputs, with which it can be run again to count its branches."""

_WALL_FACTOR, _WALL_EXTRA_S = 20.0, 60.0
"""The limit is processor time; a child that gets none, or sleeps, is ended after so much more of the clock's."""


@dataclass(frozen=True)
class Task:
    """All that one launch is told."""

    library: Path
    entry: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_mem: int
    max_shared: int
    order: int
    limit_s: float
    checked: bool
    counts_branches: bool = False


def run(task: Task, arguments: Arguments) -> tuple[dict[str, Any], bytes | None]:
    """Run the launch; the arrays change only if it ended well.

    Returns the runner's report and, of a checked launch, what it found in its arrays, to launch it again when they have
    changed: None if that is more than `MOST_KEPT_BYTES`.
    """
    with _memory_of(arguments) as (data, memory):
        _copy_in(arguments, memory)
        inputs = memory[:] if task.checked and len(memory) <= MOST_KEPT_BYTES else None
        said = _run_child(task, arguments, data, ABSENT_VALUES[0])
        if any(_is_absent_lane(fault) for fault in said["faults"]):
            said = _without_discarded_values(said, task, arguments, data, memory)
        if said["status"] == "ok":
            _copy_out(arguments, memory)
    return said, inputs


def count_branches(task: Task, arguments: Arguments, inputs: bytes) -> list[dict[str, Any]]:
    """Run a launch that ended well once more, on the inputs it had, and return the branches that its warps took."""
    with _memory_of(arguments) as (data, memory):
        memory[:] = inputs
        said = _run_child(task, arguments, data, ABSENT_VALUES[0])
    if said["status"] != "ok":
        raise RunnerError("the launch ran well once, but not again to count its branches; try a larger limit_s=")
    return list(said["branches"])


@contextlib.contextmanager
def _memory_of(arguments: Arguments) -> Iterator[tuple[int, mmap.mmap]]:
    """Give a file with room for the arrays, and its memory."""
    with _shared_file() as data:
        size = max(1, sum(stretch.pages for stretch in arguments.stretches))
        data.truncate(size)
        with mmap.mmap(data.fileno(), size) as memory:
            yield data.fileno(), memory


def _without_discarded_values(
    said: dict[str, Any], task: Task, arguments: Arguments, data: int, memory: mmap.mmap
) -> dict[str, Any]:
    """Drop the faults of shuffles that ask an absent lane, if the result does not depend on what it answers.

    CUDA lets a kernel ask and throw the answer away, as scans of ragged warps do. So run it again with another
    answer: only if an array comes out different has the kernel used a value that is not there.
    """
    first = memory[:]
    _copy_in(arguments, memory)
    again = _run_child(task, arguments, data, ABSENT_VALUES[1])
    if again["status"] != said["status"] or len(again["faults"]) != len(said["faults"]) or memory[:] != first:
        return said
    return {**said, "faults": [fault for fault in said["faults"] if not _is_absent_lane(fault)]}


def _is_absent_lane(fault: dict[str, Any]) -> bool:
    return fault["kind"] == "warp_call" and "lane" in fault


def _run_child(task: Task, arguments: Arguments, data: int, absent: int) -> dict[str, Any]:
    with _shared_file() as report:
        descriptors = (data, report.fileno())
        _wait_for_child(build.runner(), _task_text(task, arguments, *descriptors, absent), task.limit_s, descriptors)
        return _read_report(report)


def _task_text(task: Task, arguments: Arguments, data: int, report: int, absent: int) -> bytes:
    lines = [
        f"library {task.library}",
        f"entry {task.entry}",
        f"data {data}",
        f"report {report}",
        "grid {} {} {}".format(*task.grid),
        "block {} {} {}".format(*task.block),
        f"shared {task.shared_mem}",
        f"max_shared {task.max_shared}",
        f"order {task.order}",
        f"limit {task.limit_s}",
        f"checked {int(task.checked)}",
        f"branches {int(task.counts_branches)}",
        f"absent {absent}",
        *(
            f"variable {variable.address} {variable.n_bytes} {int(variable.is_shared)}"
            for variable in variables(task.library)
        ),
        *(f"memory {stretch.file_offset} {stretch.n_bytes} {stretch.element_bytes}" for stretch in arguments.stretches),
        *arguments.lines,
    ]
    return ("\n".join(lines) + "\n").encode()


@contextlib.contextmanager
def _shared_file() -> Iterator[IO[bytes]]:
    """Open a file in memory, where there is such a folder, that only this process and its child can reach."""
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryFile(dir=folder) as file:
        yield file


def _copy_in(arguments: Arguments, memory: mmap.mmap) -> None:
    for array, place in _places(arguments, memory):
        place[:] = array.reshape(-1).view(np.uint8)


def _copy_out(arguments: Arguments, memory: mmap.mmap) -> None:
    for array, place in _places(arguments, memory):
        flat = array.reshape(-1).view(np.uint8)
        if array.flags.writeable:
            flat[:] = place
        elif not np.array_equal(flat, place):
            raise LaunchError("argument", "args: expected no change to a read-only array, got one; pass a copy of it")


def _places(arguments: Arguments, memory: mmap.mmap) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Give each array with its bytes in the file, both flat."""
    for value, line in zip(arguments.values, arguments.lines, strict=True):
        if not isinstance(value, np.ndarray) or value.nbytes == 0:
            continue
        number, offset = (int(word) for word in line.split()[1:3])
        start = arguments.stretches[number].body_offset + offset
        yield value, np.frombuffer(memory, np.uint8, value.nbytes, start)


def _wait_for_child(program: Path, task: bytes, limit_s: float, descriptors: tuple[int, ...]) -> None:
    """Run the child to its end; what the kernel prints is printed here."""
    with subprocess.Popen(
        [program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=descriptors,
        close_fds=True,
    ) as child:
        try:
            printed, complaint = child.communicate(task, timeout=limit_s * _WALL_FACTOR + _WALL_EXTRA_S)
        except subprocess.TimeoutExpired:
            child.kill()
            raise RunnerError(
                f"the runner got no processor time for {limit_s:g} s of work; try again on a machine that is less busy"
            ) from None
    if printed:
        sys.stdout.write(printed.decode(errors="replace"))
        sys.stdout.flush()
    if child.returncode != 0:
        said = complaint.decode(errors="replace").strip()
        raise RunnerError(f"the runner ended with status {child.returncode}: {said or 'it said nothing'}")


def _read_report(report: IO[bytes]) -> dict[str, Any]:
    report.seek(0)
    try:
        said = json.loads(report.read())
    except ValueError:
        raise RunnerError("the runner ended without a report") from None
    if not isinstance(said, dict):
        raise RunnerError("the runner's report is not an object")
    return said
