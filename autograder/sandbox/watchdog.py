"""Count from outside what no process can be held to: sums over a whole sandbox."""

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from autograder.limits import Limits, MiB
from autograder.sandbox.groups import SPARE_BYTES, SPARE_PROCESSES

PERIOD_S = 0.1
# A kernel that speaks the message protocol itself can send one message without end, which
# collects in our memory before anybody reads it. Far more than a check of ours needs meanwhile.
OWN_GROWTH_BYTES = 512 * MiB
FOLDERS = ("w", "tmp", "dev/shm")


class Watchdog(threading.Thread):
    """Kill a sandbox when it is over a limit; `verdict` says which.

    A control group holds the sum of memory itself. Without one it is looked at every 0.1 s:
    between two looks a sandbox can take what its processes can write, some hundred MiB.
    """

    def __init__(
        self,
        init_pid: int,
        kill: Callable[[], None],
        limits: Limits,
        *,
        sum_memory: bool = True,
        shown_root: bool = True,
    ) -> None:
        super().__init__(daemon=True, name=f"watchdog-{init_pid}")
        self.init_pid, self.kill, self.limits = init_pid, kill, limits
        self.sum_memory, self.shown_root = sum_memory, shown_root
        self.verdict = ""
        self.own_bytes = _resident_bytes(os.getpid())
        self._stopped = threading.Event()

    def run(self) -> None:
        """Look again and again until stopped or over a limit."""
        while not self._stopped.wait(PERIOD_S):
            self.verdict = self.fault()
            if self.verdict:
                self.kill()
                return

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        if self.is_alive():
            self.join()

    def fault(self) -> str:
        """Return which limit is passed now, or an empty text."""
        pids = [self.init_pid, *descendants(self.init_pid)]
        most = self.limits.memory_bytes + SPARE_BYTES
        # a page that forked processes share is resident in each: the dearer count only when it matters
        if self.sum_memory and sum(map(_resident_bytes, pids)) > most and sum(map(_own_share_bytes, pids)) > most:
            return "out_of_memory"
        if len(pids) > self.limits.processes + SPARE_PROCESSES:
            return "too many processes"
        if self.shown_root and any(self._files_in(folder) > self.limits.files for folder in FOLDERS):
            return "too many files"
        if _resident_bytes(os.getpid()) - self.own_bytes > OWN_GROWTH_BYTES:
            return "too much sent to the judge"
        return ""

    def _files_in(self, folder: str) -> int:
        with contextlib.suppress(OSError):
            state = os.statvfs(f"/proc/{self.init_pid}/root/{folder}")
            return state.f_files - state.f_ffree
        return 0


def descendants(pid: int) -> list[int]:
    """Return the processes below one, as far as they can be seen while they come and go."""
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                children = [int(n) for n in (thread / "children").read_text().split()]
                found += children
                waiting += children
    return found


def is_namespace_init(pid: int) -> bool:
    """Say whether a process is number 1 of a pid namespace of its own."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return len(line.split()) > 2 and line.split()[-1] == "1"
    return False


def _own_share_bytes(pid: int) -> int:
    """Return the memory of a process, each shared page divided by those who share it."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _resident_bytes(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    return 0
