"""Formgrader in a browser, on a class with a hostile notebook: verdicts are shown, marks kept, nothing else happens.

The server is the one that an instructor starts; the pages are visited once, the tests look at what was seen.
"""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.gradebook.entrance import grade_folder
from autograder.gradebook.plugin import install

pytestmark = [pytest.mark.browser, pytest.mark.sandbox, pytest.mark.slow]

LAB = "lab01_halves"
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)><img src=http://127.0.0.2/x.png>"
SERVER_SECONDS = 90


@dataclass
class Seen:
    """What one visit to formgrader showed, and did."""

    rows: str = ""
    page: str = ""
    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def hand_in(course, student, notebook):
    folder = course.submitted / student / LAB
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{LAB}.ipynb").write_text(json.dumps(notebook))
    return folder


@pytest.fixture
def hostile(solved):
    """A good answer to everything, and something live in every place that takes text."""
    cells = {cell.id: cell for cell in solved.cells}
    cells["explain-why-answer"].source = f"It is a power of two. {EVIL}"
    cells[
        "halve-run-1"
    ].source = f"print({EVIL!r})\ndisplay({{'text/html': {EVIL!r}}}, raw=True)\nraise ValueError({EVIL!r})"
    solved.cells += [nbformat.v4.new_raw_cell(EVIL), nbformat.v4.new_markdown_cell(EVIL)]
    return solved


@pytest.fixture
def server(released_course, tmp_path):
    """Formgrader's address."""
    prefix, port = tmp_path / "prefix", free_port()
    install(prefix, released_course.project)
    environment = os.environ | {"JUPYTER_CONFIG_PATH": str(prefix / "etc" / "jupyter"), "HOME": str(tmp_path)}
    options = ["--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token=", "--ServerApp.password="]
    command = [sys.executable, "-m", "jupyter", "lab", *options, f"--ServerApp.root_dir={tmp_path}"]
    log = (tmp_path / "server.log").open("w")
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_for(f"http://127.0.0.1:{port}/api", process)
        yield f"http://127.0.0.1:{port}/formgrader"
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def wait_for(address, process):
    for _ in range(SERVER_SECONDS):
        assert process.poll() is None, "the server ended"
        try:
            with urlopen(address, timeout=1):
                return
        except (URLError, OSError):
            time.sleep(1)
    pytest.fail(f"no server at {address} after {SERVER_SECONDS} s")


def visit(browser, address):
    """Open the list of submissions and one of them, give a mark and a comment, return what was seen."""
    seen = Seen()
    page = browser.new_page()
    page.on("request", lambda request: address[:20] in request.url or seen.foreign.append(request.url))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(f"{address}/manage_submissions/{LAB}")
    page.get_by_text("needs autograding").wait_for()
    seen.rows = page.locator("tbody").inner_html()
    page.goto(f"{address}/gradebook/{LAB}/{LAB}")
    page.locator("tbody a").first.click()
    page.locator("input.score").first.wait_for()
    page.wait_for_load_state("networkidle")  # marks and comments come after the page
    page.locator("input.score[id='explain-why']").fill("1.5")
    page.locator("textarea[id='explain-why-comment']").fill("well said")
    with page.expect_response(lambda response: "/api/comment/" in response.url and response.request.method == "PUT"):
        page.locator("textarea[id='explain-why-comment']").blur()
    page.wait_for_load_state("networkidle")
    seen.page = page.locator("#notebook").first.inner_text()
    page.close()
    return seen


def test_formgrader_shows_verdicts_and_keeps_marks(released_course, hostile, server, chromium):
    folder = hand_in(released_course, "ada", hostile)
    assert grade_folder(released_course, LAB, "ada", folder).score == 6
    grade_folder(released_course, LAB, "bob", hand_in(released_course, "bob", "not a notebook"))
    with Gradebook(f"sqlite:///{released_course.root}/gradebook.db", "fp4kv") as book:
        book.update_or_create_student("ada", first_name="Ada", last_name="O'Hara & Söhne")
    seen = visit(chromium, server)
    assert "halve-values: passed, 2 of 2 points" in seen.page
    assert "It is a power of two." in seen.page and "<script>alert(1)" in seen.page.replace("\u200b", "")
    assert "O'Hara &amp; Söhne, Ada" in seen.rows
    assert "bob" in seen.rows and "needs autograding" in seen.rows and "<script" not in seen.rows
    assert (seen.dialogs, seen.foreign, seen.errors) == ([], [], [])
    grade_folder(released_course, LAB, "ada", folder)
    with Gradebook(f"sqlite:///{released_course.root}/gradebook.db", "fp4kv") as book:
        grade = book.find_grade("explain-why", LAB, LAB, "ada")
        comment = book.find_comment("explain-why", LAB, LAB, "ada").comment
        assert (grade.manual_score, grade.needs_manual_grade, comment) == (1.5, False, "well said")
