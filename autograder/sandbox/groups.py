"""Control groups: one budget of memory and processes for a whole sandbox.

Version 2 is used where the grader may make a group there (root, or a user to whom systemd has
delegated one), else version 1 (root), else none: then each process has its own limit of memory
and the watchdog counts their sum.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from autograder.limits import Limits, MiB

SPARE_BYTES, SPARE_PROCESSES = 256 * MiB, 16
MOUNTS, OWN = Path("/proc/self/mounts"), Path("/proc/self/cgroup")
# By version: file for the limit of memory, and the file and word that count what it killed.
MEMORY_FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}
SWAP_FILES = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}
COUNT_FILES = {1: "memory.oom_control", 2: "memory.events"}
# Joins every group named after their number, then becomes the rest of the command line.
JOIN = 'n=$1; shift; while [ $n -gt 0 ]; do echo $$ > "$1/cgroup.procs" || exit 71; shift; n=$((n-1)); done; exec "$@"'


@dataclass
class ControlGroup:
    """The folders in which one sandbox is counted; none where the machine gives none."""

    version: int = 0
    folders: list[Path] = field(default_factory=list)

    @classmethod
    def create(cls, name: str, limits: Limits) -> "ControlGroup":
        """Return a new group with the limits, or one without folders."""
        for version, parents in ((2, _parents_v2()), (1, _parents_v1())):
            group = cls(version)
            for parent in parents:
                if group._add(parent / name, limits) and version == 2:
                    break
            if group.folders:
                return group
        return cls()

    def _add(self, folder: Path, limits: Limits) -> bool:
        """Make one folder and set what it can limit; leave nothing if it can limit nothing."""
        with contextlib.suppress(OSError):
            folder.mkdir()
        if not folder.is_dir():
            return False
        memory = _write(folder / MEMORY_FILES[self.version], limits.memory_bytes + SPARE_BYTES)
        swap = 0 if self.version == 2 else limits.memory_bytes + SPARE_BYTES
        _write(folder / SWAP_FILES[self.version], swap)
        processes = _write(folder / "pids.max", limits.processes + SPARE_PROCESSES)
        if memory or processes:
            self.folders.append(folder)
            return True
        folder.rmdir()
        return False

    def counts_memory(self) -> bool:
        """Say whether the kernel of the machine holds the sandbox to its memory."""
        return any((folder / MEMORY_FILES[self.version]).exists() for folder in self.folders)

    def command(self) -> list[str]:
        """Return a prefix that puts a command into the group before it starts."""
        return ["sh", "-c", JOIN, "sh", str(len(self.folders)), *map(str, self.folders)] if self.folders else []

    def ran_out_of_memory(self) -> bool:
        """Say whether something here was killed for its memory."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                for line in (folder / COUNT_FILES[self.version]).read_text().splitlines():
                    if line.startswith("oom_kill ") and int(line.split()[1]):
                        return True
        return False

    def members(self) -> list[int]:
        """Return the processes that are in the group now."""
        found: set[int] = set()
        for folder in self.folders:
            with contextlib.suppress(OSError):
                found |= {int(pid) for pid in (folder / "cgroup.procs").read_text().split()}
        return sorted(found)

    def remove(self) -> None:
        """End what is left in the group and remove it."""
        for _ in range(250):
            for pid in self.members():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            for folder in self.folders:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            self.folders = [folder for folder in self.folders if folder.exists()]
            if not self.folders:
                return
            time.sleep(0.02)


def find(name: str) -> ControlGroup:
    """Return the group of that name which an ended grader left behind, perhaps without folders."""
    for version, parents in ((2, _parents_v2()), (1, _parents_v1())):
        folders = [parent / name for parent in parents if (parent / name).is_dir()]
        if folders:
            return ControlGroup(version, folders)
    return ControlGroup()


def _parents_v1() -> Iterator[Path]:
    """Yield our own group of the two controllers, or the top one where ours is not shown."""
    own = {name: path for _, names, path in _own_groups() for name in names.split(",")}
    for fields in _mounts("cgroup"):
        for controller in {"memory", "pids"} & set(fields[3].split(",")):
            top = Path(fields[1])
            mine = top / own.get(controller, "/").lstrip("/")
            yield mine if mine.is_dir() else top


def _parents_v2() -> Iterator[Path]:
    """Yield the groups, nearest first, below which we may make one that counts memory."""
    own = next((path for number, names, path in _own_groups() if number == "0" and not names), "/")
    for fields in _mounts("cgroup2"):
        top = Path(fields[1])
        nearest = top / own.lstrip("/")
        for folder in (nearest, *nearest.parents):
            if folder.is_relative_to(top) and os.access(folder / "cgroup.procs", os.W_OK) and _delegates(folder):
                yield folder


def _delegates(folder: Path) -> bool:
    """Say whether groups below can count memory and processes; ask for it where allowed."""
    wanted, control = {"memory", "pids"}, folder / "cgroup.subtree_control"
    with contextlib.suppress(OSError):
        if not wanted <= set((folder / "cgroup.controllers").read_text().split()):
            return False
        if not wanted <= set(control.read_text().split()):
            control.write_text("+memory +pids")
        return True
    return False


def _own_groups() -> list[list[str]]:
    with contextlib.suppress(OSError):
        return [line.split(":", 2) for line in OWN.read_text().splitlines()]
    return []


def _mounts(kind: str) -> list[list[str]]:
    with contextlib.suppress(OSError):
        return [line.split() for line in MOUNTS.read_text().splitlines() if line.split()[2] == kind]
    return []


def _write(path: Path, value: int) -> bool:
    """Set an existing knob; a file that is not there is not made."""
    with contextlib.suppress(OSError):
        if path.exists():
            path.write_text(str(value))
            return True
    return False
