"""Where what was compiled or fetched is kept: this user's alone, and several processes may fill it at once."""

import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

VARIABLE = "LABKIT_CACHE"
"""Names the folder; without it the user's cache folder is taken, and failing that a private temporary one."""

_PRIVATE = 0o700

_HAS_USERS = hasattr(os, "getuid")
"""Not so on Windows, where a user's folder is his own by other means, and modes say nothing."""

_USER = os.getuid() if _HAS_USERS else 0


def folder() -> Path:
    """Return the cache folder, made if need be; nobody else can write to it."""
    for candidate in _candidates():
        if _is_ours(candidate):
            return candidate
    return _temporary()


def installed(name: str) -> Path | None:
    """Return what was compiled when this Python environment was made, if it was: names say what it was made from."""
    path = Path(sys.prefix, "share", "labkit", name)
    return path if path.is_file() else None


def keep(path: Path, make: Callable[[Path], None]) -> Path:
    """Return `path`, made by `make` under another name first if it is not there, then put in place in one step."""
    if path.exists():
        return path
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".making-") as workshop:
        made = Path(workshop, path.name)
        make(made)
        made.replace(path)
    return path


def _candidates() -> list[Path]:
    if named := os.environ.get(VARIABLE):
        return [Path(named)]
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return [Path(base, "labkit"), Path(tempfile.gettempdir(), f"labkit-{_USER}")]


def _is_ours(path: Path) -> bool:
    """Make the folder; refuse one that others own or may write to, for what is in it gets executed."""
    try:
        path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError:
        return False
    others_write = _HAS_USERS and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == _USER and not others_write and os.access(path, os.W_OK)


_made: list[tempfile.TemporaryDirectory[str]] = []


def _temporary() -> Path:
    if not _made:
        _made.append(tempfile.TemporaryDirectory(prefix="labkit-"))
    return Path(_made[0].name)
