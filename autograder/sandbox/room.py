"""One sandbox from start to end: sockets, limits, process, and nothing left afterwards."""

import contextlib
import fcntl
import io
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.errors import SandboxError, SubmissionError
from autograder.limits import Limits
from autograder.sandbox import groups, seccomp, view
from autograder.sandbox.watchdog import Watchdog, descendants, is_namespace_init

FOLDER_PREFIX = "autograder-room-"
START_SECONDS, END_SECONDS = 20, 10
BLOCK_BYTES = 4096
LONGEST_FOLDER = 60
SWEEP_AFTER_SECONDS = 60
CONSTANT_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}  # process 1 keeps it, readable inside


@dataclass
class Room:
    """A place for one kernel. `walls=False` runs it unprotected, for one's own notebook only.

    The folder holds five sockets and is not shown inside; the kernel inherits the listening
    ends. Everything that a kernel writes is on size-limited tmpfs and ends with it.
    """

    prefix: Path
    limits: Limits
    walls: bool = True
    folder: Path = field(init=False)
    process: subprocess.Popen[bytes] | None = None
    init_pid: int = 0
    init_fd: int = -1  # a descriptor, because the number may soon be another process's
    group: groups.ControlGroup = field(default_factory=groups.ControlGroup)
    watchdog: Watchdog | None = None

    def __post_init__(self) -> None:
        if self.walls and shutil.which("bwrap") is None:
            raise SandboxError("sandbox: expected the program bwrap, found none; install the package bubblewrap")
        self.folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=_short_folder()))
        self._lock = _hold(self.folder / "alive")
        self._sockets: dict[str, socket.socket] = {}

    def listen(self, name: str, path: str) -> None:
        """Open a socket of the host that the kernel will answer on."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(8)
        self._sockets[name] = listener

    def start(
        self, connection: Mapping[str, Any], files: Mapping[str, bytes], reply: int = -1
    ) -> subprocess.Popen[bytes]:
        """Start the kernel with the submitted files in its working folder.

        With a `reply`, the writing end of a pipe, it is no notebook's kernel but one request about a CUDA kernel.

        Raises
        ------
        SandboxError
            If the machine gives no sandbox; the text is what it said.
        SubmissionError
            If the files are more than the sandbox's disk.
        """
        archive = _memory_file(pack(files, self.limits))
        opened = [archive]
        try:
            settings = _memory_file(json.dumps(self._settings(connection, archive) | {"reply": reply}).encode())
            opened.append(settings)
            filter_bytes = seccomp.program() if self.walls else b""
            filter_fd = _memory_file(filter_bytes) if filter_bytes else None
            opened += [filter_fd] if filter_fd is not None else []
            self.process = self._launch(settings, filter_fd, [*opened, reply] if reply >= 0 else opened)
        finally:
            for descriptor in opened:
                os.close(descriptor)
            self._close_sockets()
        self.init_pid = self._wait_for_init() if self.walls else self.process.pid
        self.init_fd = os.pidfd_open(self.init_pid)
        counted = self.group.counts_memory()
        self.watchdog = Watchdog(self.init_pid, self.kill, self.limits, sum_memory=not counted, shown_root=self.walls)
        self.watchdog.start()
        return self.process

    def _settings(self, connection: Mapping[str, Any], archive: int) -> dict[str, Any]:
        work = "/w" if self.walls else str(self.folder / "work")
        return {
            "connection": dict(connection),
            "files": archive,
            "limits": rlimits(self.limits, own_uid=self.walls),
            "output_bytes": self.limits.output_bytes,
            "sockets": {name: listener.fileno() for name, listener in self._sockets.items()},
            "work": work,
            "temporary": "/tmp" if self.walls else str(self.folder / "temporary"),
        }

    def _launch(self, settings: int, filter_fd: int | None, opened: list[int]) -> "subprocess.Popen[bytes]":
        environment = dict(CONSTANT_ENVIRONMENT)
        if self.walls:
            self.group = groups.ControlGroup.create(self.folder.name, self.limits)
            walls = view.bwrap_command(self.prefix, self.limits, filter_fd, str(self.folder))
            launcher = f"{view.SHOWN_INSIDE}/launch.py"
        else:
            walls, launcher = [], str(view.INSIDE / "launch.py")
            environment = _plain_environment(self.prefix, self.folder)
        command = [*self.group.command(), *walls, f"{self.prefix}/bin/python", "-I", launcher, str(settings)]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=[*opened, *(listener.fileno() for listener in self._sockets.values())],
            cwd="/",
            env=environment,
        )

    def _wait_for_init(self) -> int:
        """Return the pid, as the host sees it, of process 1 of the sandbox."""
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            for pid in descendants(self.process.pid):
                if is_namespace_init(pid):
                    return pid
            time.sleep(0.005)
        raise SandboxError(f"sandbox: expected it to start, got {self.last_words()!r}; run: autograder doctor")

    def last_words(self) -> str:
        """Return what an ended sandbox printed before our kernel took over, shortened."""
        if self.process is None or self.process.stderr is None or self.process.poll() is None:
            return ""
        return os.read(self.process.stderr.fileno(), 2000).decode(errors="replace").strip()

    def kill(self) -> None:
        """Kill process 1 of the sandbox, and with it everything inside."""
        with contextlib.suppress(ProcessLookupError):
            if self.init_fd >= 0:
                signal.pidfd_send_signal(self.init_fd, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            if self.process is not None and self.process.poll() is None:
                self.process.kill() if self.walls else os.killpg(self.process.pid, signal.SIGKILL)

    def why_it_ended(self) -> str:
        """Return "out_of_memory", another limit that was passed, or an empty text."""
        if self.group.ran_out_of_memory():
            return "out_of_memory"
        return self.watchdog.verdict if self.watchdog else ""

    def remove(self) -> None:
        """Leave nothing behind: no process, no thread, no control group, no folder."""
        self.kill()
        if self.watchdog:
            self.watchdog.stop()
        if self.process:
            self.process.wait()
            if self.process.stderr:
                self.process.stderr.close()
        if self.init_fd >= 0:
            select.select([self.init_fd], [], [], END_SECONDS)  # process 1 ends after all others
            os.close(self.init_fd)
            self.init_fd = -1
        self.group.remove()
        self._close_sockets()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _close_sockets(self) -> None:
        for listener in self._sockets.values():
            listener.close()
        self._sockets.clear()


def rlimits(limits: Limits, own_uid: bool = True) -> dict[str, int]:
    """Return the limits that a process sets on itself before it becomes the kernel.

    RLIMIT_DATA and not RLIMIT_AS: torch reserves address space that it never uses. Processes
    are counted by uid, so only where the uid is the sandbox's own.
    """
    found = {
        "RLIMIT_DATA": limits.memory_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_CPU": int(2 * limits.notebook_seconds) + 60,
        "RLIMIT_MSGQUEUE": 0,
    }
    return found | ({"RLIMIT_NPROC": limits.processes} if own_uid else {})


def pack(files: Mapping[str, bytes], limits: Limits) -> bytes:
    """Return files as a tar archive: bytes go in, no folder is shared.

    Raises
    ------
    SubmissionError
        If they are more than half of the sandbox's disk, or one could not be written there.
    """
    size = sum(BLOCK_BYTES * (1 + len(content) // BLOCK_BYTES) for content in files.values())
    if size > limits.disk_bytes // 2:
        raise SubmissionError(f"files: expected at most {limits.disk_bytes // 2} bytes beside the notebook, got {size}")
    for name, content in files.items():
        if len(content) > limits.file_bytes or ".." in Path(name).parts or Path(name).is_absolute():
            raise SubmissionError(f"files: expected at most {limits.file_bytes} bytes below the folder, got {name!r}")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def sweep() -> list[str]:
    """Remove what graders left that were killed in mid-work; return the names.

    A folder belongs to a living grader as long as that one holds the lock in it, which it takes
    a moment after it made the folder.
    """
    found = []
    for folder in Path(_short_folder()).glob(f"{FOLDER_PREFIX}*"):
        old = os.access(folder, os.W_OK) and time.time() - folder.stat().st_mtime > SWEEP_AFTER_SECONDS
        lock = _hold(folder / "alive") if old else None
        if lock is not None:
            groups.find(folder.name).remove()
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
            found.append(folder.name)
    return found


def _short_folder() -> str:
    """Return a folder for temporary files whose name leaves room for a socket's: 108 bytes in all."""
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) < LONGEST_FOLDER else "/tmp"


def _hold(path: Path) -> int | None:
    """Return a locked descriptor, or None if another process holds the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _memory_file(data: bytes) -> int:
    descriptor = os.memfd_create("autograder", 0)
    with os.fdopen(os.dup(descriptor), "wb") as target:
        target.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _plain_environment(prefix: Path, folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("LANG", "LD_LIBRARY_PATH") if name in os.environ}
    home = str(folder / "temporary")
    found = {"PATH": f"{prefix}/bin:{os.environ.get('PATH', '/usr/bin')}", "HOME": home, "TMPDIR": home}
    return {**found, **kept, **{name: value.replace("/tmp", home) for name, value in view.SETTINGS.items()}}
