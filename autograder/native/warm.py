"""labkit's runner, which takes seconds to compile: made once for a machine, kept beside the environment."""

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

from autograder.errors import SandboxError
from autograder.inside import values
from autograder.limits import Limits
from autograder.native.booth import Ended, ask

BUILD_SECONDS = 300.0

_known: dict[Path, dict[str, bytes]] = {}


def warm_files(prefix: Path, limits: Limits, sandbox: str) -> dict[str, bytes]:
    """Return the files of labkit's cache that every sandbox needs; they are made where nothing of a student's is.

    Raises
    ------
    SandboxError
        If there is no compiler, or the runner does not compile.
    """
    path = _path(prefix)
    if path not in _known:
        _known[path] = _read(path) or _build(prefix, limits, sandbox)
        if not path.exists():
            _write(path, _known[path])
    return _known[path]


def _path(prefix: Path) -> Path:
    """Return where they are kept: named after the environment, whose name stands for labkit, and the compiler."""
    compiler = Path(shutil.which("g++") or "g++").resolve()
    status = compiler.stat() if compiler.exists() else None
    identity = f"{compiler} {status.st_size} {status.st_mtime_ns}" if status else "none"
    return prefix.with_name(f"{prefix.name}-runner-{hashlib.sha256(identity.encode()).hexdigest()[:16]}")


def _build(prefix: Path, limits: Limits, sandbox: str) -> dict[str, bytes]:
    answer = ask({"op": "warm", "files": {}}, limits, prefix, sandbox, BUILD_SECONDS)
    if isinstance(answer, Ended) or "error" in answer:
        why = answer.why if isinstance(answer, Ended) else answer["error"]["text"]
        raise SandboxError(f"kernels: expected a machine that compiles them, got: {why}")
    return dict(answer["files"])


def _read(path: Path) -> dict[str, bytes]:
    with contextlib.suppress(OSError, values.BadValue):
        return dict(values.decode(path.read_bytes()))
    return {}


def _write(path: Path, files: dict[str, bytes]) -> None:
    """Keep the files if this folder may be written to; a reader sees all of them or none."""
    made = path.with_name(f".{path.name}-{os.getpid()}")
    with contextlib.suppress(OSError):
        made.write_bytes(values.encode(files))
        made.replace(path)
