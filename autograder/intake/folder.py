"""From a folder that a student filled to the bytes that count: no links, no devices, no surprises.

Everything is opened relative to the folder it was found in and without following links, so that
nothing outside the submission can be read, not even by a link swapped in while we look.
"""

import hashlib
import os
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import SubmissionError

MAX_NOTEBOOK_BYTES = 32 << 20
MAX_FILE_BYTES = 16 << 20
MAX_TOTAL_BYTES = 64 << 20
MAX_FILES = 200
MAX_DEPTH = 4
IGNORED_NAMES = {"__MACOSX", "__pycache__", "timestamp.txt"}
"""Left by archives, by Python and by nbgrader's collect: not the student's, and not hashed."""

OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Submission:
    """The bytes that a student handed in, by path inside the folder.

    `notes` says what was left out and why; `digest` is SHA-256 over names and bytes.
    """

    files: dict[str, bytes]
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """A name for these bytes: equal files give equal digests, whatever the notes."""
        digest = hashlib.sha256()
        for path, data in sorted(self.files.items()):
            for part in (path.encode("utf-8"), data):
                digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    @classmethod
    def of(cls, files: Mapping[str, bytes]) -> "Submission":
        """Return a submission of files that are already in memory."""
        return cls(dict(files))


def read_folder(folder: Path) -> Submission:
    """Return the plain files of a submission, under limits on size, number and depth.

    Links, devices, pipes, and files that are too large or nested too deep are left out with a
    note. Hidden files and what archives and nbgrader add are left out without one.

    Raises
    ------
    SubmissionError
        If the folder is missing, is a link, or cannot be read.
    """
    try:
        top = os.open(folder, OPEN_FLAGS | os.O_DIRECTORY)
    except OSError as error:
        raise SubmissionError(f"submission: expected a folder, got {_kind(folder)} ({error.strerror})") from None
    try:
        return _Reader().read(top)
    except OSError as error:
        raise SubmissionError(f"submission: expected a readable folder, got {error.strerror}") from None
    finally:
        os.close(top)


def read_notebook(path: Path) -> Submission:
    """Return the submission that consists of one notebook, wherever it lies.

    Raises
    ------
    SubmissionError
        If there is no such file, or it is too large.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as source:
            mode = os.fstat(source.fileno()).st_mode
            if not stat.S_ISREG(mode):  # a pipe without a writer would be waited for
                raise SubmissionError(f"notebook: expected a file, got {str(path)!r}, which is {_name_of(mode)}")
            data = source.read(MAX_NOTEBOOK_BYTES + 1)
    except OSError as error:
        raise SubmissionError(f"notebook: expected a file, got {str(path)!r} ({error.strerror})") from None
    if len(data) > MAX_NOTEBOOK_BYTES:
        raise SubmissionError(_too_large(path.name))
    return Submission({path.name: data})


class _Reader:
    """One walk through a submission, shallow files first, notebooks before others."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.notes: list[str] = []
        self.total = 0

    def read(self, top: int) -> Submission:
        """Return what lies below an open folder."""
        self._read_level(top, "", depth=0)
        return Submission(self.files, tuple(self.notes))

    def _read_level(self, folder: int, prefix: str, depth: int) -> None:
        inner: list[str] = []
        for name, mode in _entries(folder):
            path = prefix + name
            if stat.S_ISDIR(mode):
                inner.append(name)
            elif not stat.S_ISREG(mode):
                self.notes.append(f"{path!a}: left out, it is {_name_of(mode)}, not a plain file")
            else:
                self._take(folder, name, path)
        for name in inner:
            self._descend(folder, name, prefix + name, depth)

    def _descend(self, folder: int, name: str, path: str, depth: int) -> None:
        if depth >= MAX_DEPTH:
            self.notes.append(f"{path!a}: left out, nested deeper than {MAX_DEPTH} folders")
            return
        try:
            below = os.open(name, OPEN_FLAGS | os.O_DIRECTORY, dir_fd=folder)
        except OSError as error:
            self.notes.append(f"{path!a}: left out, it cannot be read ({error.strerror})")
            return
        try:
            self._read_level(below, f"{path}/", depth + 1)
        except OSError as error:
            self.notes.append(f"{path!a}: left out, it cannot be listed ({error.strerror})")
        finally:
            os.close(below)

    def _take(self, folder: int, name: str, path: str) -> None:
        problem = self._why_not(path)
        data = b""
        if not problem:
            limit = min(MAX_NOTEBOOK_BYTES if path.endswith(".ipynb") else MAX_FILE_BYTES, MAX_TOTAL_BYTES - self.total)
            try:
                data = _read_file(folder, name, limit)
                problem = _too_large(path) if len(data) > limit else ""
            except OSError as error:
                problem = f"{path!a}: left out, it cannot be read ({error.strerror})"
        if problem:
            self.notes.append(problem)
            return
        self.files[unicodedata.normalize("NFC", path)] = data
        self.total += len(data)

    def _why_not(self, path: str) -> str:
        if not path.isprintable():
            return f"{path!a}: left out, its name is not printable text"
        if len(self.files) >= MAX_FILES:
            return f"{path!a}: left out, there are more than {MAX_FILES} files"
        return ""


def _entries(folder: int) -> Iterator[tuple[str, int]]:
    """Yield (name, mode) of what lies in a folder, notebooks first, then by name."""
    with os.scandir(folder) as found:
        entries = [(entry.name, entry.stat(follow_symlinks=False).st_mode) for entry in found]
    for name, mode in sorted(entries, key=lambda entry: (not entry[0].endswith(".ipynb"), entry[0])):
        if not name.startswith(".") and name not in IGNORED_NAMES:
            yield name, mode


def _read_file(folder: int, name: str, limit: int) -> bytes:
    descriptor = os.open(name, OPEN_FLAGS, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as source:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(None, "it is no plain file any more")
        return source.read(limit + 1)


def _too_large(path: str) -> str:
    if path.endswith(".ipynb"):
        return f"{path!a}: larger than {MAX_NOTEBOOK_BYTES >> 20} MiB; clear its outputs, save it and submit again"
    return f"{path!a}: left out, larger than {MAX_FILE_BYTES >> 20} MiB, or all files than {MAX_TOTAL_BYTES >> 20} MiB"


def _kind(path: Path) -> str:
    try:
        return _name_of(path.lstat().st_mode)
    except OSError:
        return "nothing"


def _name_of(mode: int) -> str:
    names = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFREG: "a file", stat.S_IFIFO: "a pipe"}
    return names.get(stat.S_IFMT(mode), "a device or socket")
