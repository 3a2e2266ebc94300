"""One request in a sandbox of its own: bytes in, bytes out, and nothing left."""

import contextlib
import os
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.errors import SandboxError
from autograder.inside import values
from autograder.inside.native import REQUEST
from autograder.limits import Limits, MiB
from autograder.sandbox import Room

READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Ended:
    """A sandbox that gave no answer: one of `timed_out`, `out_of_memory` and `crashed`, and why in a few words."""

    status: str
    why: str


def ask(
    request: Mapping[str, Any], limits: Limits, prefix: Path, sandbox: str, seconds: float
) -> dict[str, Any] | Ended:
    """Return the answer to one request of `inside.native`, plain data which may be forged.

    Raises
    ------
    SandboxError
        If the machine gives no sandbox.
    """
    room = Room(prefix, limits, walls=sandbox == "bubblewrap")
    reader, writer = os.pipe()
    try:
        try:
            room.start({}, {REQUEST: values.encode(dict(request))}, writer)
        finally:
            os.close(writer)
        data = _read(reader, limits.reply_bytes + MiB, time.monotonic() + seconds)
        if data is None:
            return Ended("timed_out", f"no answer within {seconds:g} s")
        why = room.why_it_ended()
        words = room.last_words()
    finally:
        os.close(reader)
        room.remove()
    if why:
        return Ended("out_of_memory" if why == "out_of_memory" else "crashed", why)
    if not data and words:
        raise SandboxError(f"kernel's sandbox: expected an answer, got {words!r}")
    return _decoded(data)


def _read(reader: int, most: int, deadline: float) -> bytes | None:
    """Return all that comes through a pipe, cut at a size; None if it does not end in time."""
    parts: list[bytes] = []
    size = 0
    while size <= most:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        part = os.read(reader, READ_BYTES)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _decoded(data: bytes) -> dict[str, Any] | Ended:
    with contextlib.suppress(values.BadValue):
        answer = values.decode(data)
        if isinstance(answer, dict):
            return answer
    return Ended("crashed", "the answer cannot be read")
