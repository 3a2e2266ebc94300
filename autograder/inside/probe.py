"""What `autograder doctor` runs inside a sandbox to see whether the walls hold."""

import importlib.util
import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

SKIPPED = {"/proc", "/sys", "/dev"}
OUTSIDE = ("192.0.2.1", 80)  # an address of RFC 5737's range for documentation: no such host answers
MiB = 1 << 20


def report(asked: dict[str, Any]) -> str:
    """Return what can be seen and done from here, as JSON."""
    return json.dumps(
        {
            "uid": os.getuid(),
            "interfaces": sorted(name for _, name in socket.if_nameindex()),
            "network": network(),
            "shown": [path for path in asked["hidden_paths"] if Path(path).exists()],
            "imports": [name for name in asked["forbidden"] if importlib.util.find_spec(name)],
            "files": files_named(set(asked["forbidden_files"])),
            "writable": [folder for folder in ("/", "/usr", "/proc/1/mem", "/etc") if os.access(folder, os.W_OK)],
            "variables": sorted(os.environ),
            "limits": {
                "memory": memory_is_limited(asked["memory_bytes"]),
                "disk": disk_is_limited(asked["disk_bytes"]),
                "processes": processes_are_limited(asked["processes"]),
            },
        }
    )


def network() -> str:
    """Return how an attempt to leave the machine ended."""
    try:
        socket.create_connection(OUTSIDE, 1).close()
    except OSError as error:
        return type(error).__name__ if isinstance(error, TimeoutError) else str(error)
    return "connected"


def files_named(names: set[str]) -> list[str]:
    """Return the files and folders of these names that can be seen anywhere."""
    found = []
    for folder, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in SKIPPED]  # noqa: PTH118
        found += [f"{folder}/{name}" for name in {*folders, *files} & names]
    return sorted(found)[:20]


def memory_is_limited(max_bytes: int) -> bool:
    """Say whether more memory than the limit is refused."""
    try:
        bytearray(max_bytes + 64 * MiB)
    except MemoryError:
        return True
    return False


def disk_is_limited(max_bytes: int) -> bool:
    """Say whether more than the limit can be written."""
    paths = [Path(f"/w/probe-{n}") for n in range(2 + max_bytes // (16 * MiB))]
    try:
        for path in paths:
            path.write_bytes(bytes(16 * MiB))
    except OSError:
        return True
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
    return False


def processes_are_limited(most: int) -> bool:
    """Say whether more processes than the limit are refused."""
    started = []
    try:
        for _ in range(most + 8):
            started.append(subprocess.Popen(["sleep", "30"]))
    except OSError:
        return True
    finally:
        for process in started:
            process.kill()
            process.wait()
        time.sleep(0.05)
    return False
