"""The book, built once for all of its tests, served on this machine and read by Chromium."""

import fcntl
import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

PROJECT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT / "book"), str(PROJECT / "book" / "_ext")]  # as the build itself does


@pytest.fixture(scope="session")
def built(project: Path, testrun_uid: str) -> Path:
    """The folder of the built pages, built once for all workers of a run; executed chapters are kept longer."""
    out = project / ".cache" / "book"
    out.mkdir(parents=True, exist_ok=True)
    mark = out / "test-run"
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second worker would throw away the pages that the first one serves
        if not mark.is_file() or mark.read_text() != testrun_uid:
            build_book(project, out)
            mark.write_text(testrun_uid)
    return out / "_build" / "html"


def build_book(project: Path, out: Path) -> None:
    command = [sys.executable, project / "book" / "build.py", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.fixture(scope="session")
def address(built: Path) -> Iterator[str]:
    """The address under which the pages are served."""
    handler = functools.partial(SilentHandler, directory=str(built))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class SilentHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A fresh profile: nothing cached, no choice of colours."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    yield context
    context.close()
