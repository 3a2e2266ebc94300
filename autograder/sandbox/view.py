"""What a sandbox shows: the bubblewrap command line."""

import os
from collections.abc import Sequence
from pathlib import Path

from autograder.errors import SandboxError
from autograder.limits import Limits
from autograder.sandbox import privileges

INSIDE = Path(__file__).resolve().parents[1] / "inside"
SHOWN_INSIDE = "/judge/autograder_inside"
OPTIONAL = ("/etc/ld.so.cache", "/etc/fonts", "/etc/alternatives", "/etc/localtime")
SETTINGS = {
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "IPYTHONDIR": "/tmp/ipython",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "PIP_NO_INDEX": "1",  # `!pip install numpy` finds it there; another package fails at once
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "OMP_NUM_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "2",
}


def base_of(prefix: Path) -> Path:
    """Return the installation that a virtual environment borrows its interpreter from.

    Raises
    ------
    SandboxError
        If there is no interpreter.
    """
    python = prefix / "bin" / "python"
    if not python.exists():
        raise SandboxError(f"environment: expected an interpreter at {python}, found none; run: autograder doctor")
    return python.resolve().parent.parent


def readable_folders(prefix: Path) -> list[str]:
    """Return the host folders that a kernel of this environment needs, shortest first."""
    return sorted({"/usr", str(base_of(prefix)), str(prefix)}, key=len)


def hidden_folders(prefix: Path) -> list[str]:
    """Return folders below the shown ones that hold packages which no lab allowed.

    The base installation may be the one that the course itself is installed in.
    """
    found: list[Path] = []
    for base in {base_of(prefix), Path("/usr"), Path("/usr/local")}:
        found += base.glob("lib/python3*/site-packages")
        found += base.glob("lib/python3*/dist-packages")
    return sorted(str(folder) for folder in set(found) if not folder.is_relative_to(prefix))


def bwrap_command(prefix: Path, limits: Limits, seccomp_fd: int | None, stage: str) -> list[str]:
    """Return the command prefix that runs a program in the sandbox, as root or as anybody.

    Notes on the order: `--size` goes before its `--tmpfs`; the root and /dev are writable until
    remounted; /proc is read-only so that nobody writes to the memory of process 1; folders of the
    host come after /tmp, for an environment may lie there.
    """
    binds = [(folder, folder) for folder in readable_folders(prefix)]
    binds += [(extra, extra) for extra in OPTIONAL if Path(extra).exists()] + [(str(INSIDE), SHOWN_INSIDE)]
    sources = [source for source, _ in binds]
    first = privileges.give_root_away(sources, stage, privileges.next_uid()) if os.getuid() == 0 else []
    size = str(limits.disk_bytes)
    return [
        *first,
        *["bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"],
        *["--hostname", "sandbox", "--die-with-parent", "--new-session"],
        *["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"],
        *["--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
        *["--size", size, "--tmpfs", "/tmp", "--size", size, "--tmpfs", "/w"],
        *_show(binds),
        *_hide(hidden_folders(prefix)),
        *["--remount-ro", "/", "--chdir", "/w"],
        *_environment(prefix),
        *(["--seccomp", str(seccomp_fd)] if seccomp_fd is not None else []),
    ]


def _show(binds: Sequence[tuple[str, str]]) -> list[str]:
    """Show host folders read-only; missing parents are made first, else they get mode 0700."""
    arguments: list[str] = []
    made: set[Path] = set()
    for source, target in binds:
        for parent in reversed(Path(target).parents[:-1]):
            if parent not in made:
                made.add(parent)
                arguments += ["--dir", str(parent)]
        made.add(Path(target))
        arguments += ["--ro-bind", source, target]
    for name in ("bin", "sbin", "lib", "lib64"):
        arguments += ["--symlink", f"usr/{name}", f"/{name}"]
    return arguments


def _hide(folders: Sequence[str]) -> list[str]:
    return [part for folder in folders for part in ("--tmpfs", folder, "--remount-ro", folder)]


def _environment(prefix: Path) -> list[str]:
    variables = {"PATH": f"{prefix}/bin:/usr/bin", **SETTINGS}
    core = os.environ.get("OPENBLAS_CORETYPE")
    if core:
        variables["OPENBLAS_CORETYPE"] = core
    return ["--clearenv", *(part for name, value in variables.items() for part in ("--setenv", name, value))]
