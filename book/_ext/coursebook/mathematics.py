"""Mathematics: the full stop after a formula stays with it, and a busy machine does not break the rendering.

Formulae are rendered at build by a server in Node. sphinxcontrib-katex connects as soon as the server's
socket exists, which may be before the server listens on it, and gives Node five seconds. We try until it
answers, and leave no server behind if it never does.
"""

import contextlib
import re
import socket
import time
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from docutils import nodes
from sphinxcontrib import katex

START_SECONDS = 60.0
PAUSE_SECONDS = 0.01
PUNCTUATION = re.compile(r"[.,;:?)]+")
LONGEST_UNBROKEN = 24  # characters of source: a longer formula must be free to break on a phone


def register(app: Any) -> None:
    """Register with Sphinx."""
    app.connect("doctree-read", keep_punctuation)
    katex.KaTeXServer.start_server_process = staticmethod(start_server)
    katex.RENDER_TIMEOUT = START_SECONDS


def keep_punctuation(app: Any, tree: nodes.document) -> None:
    """Let no line break between a short formula and the punctuation that follows it."""
    for formula in list(tree.findall(nodes.math)):
        parent, after = formula.parent, formula.next_node(descend=False, siblings=True)
        mark = PUNCTUATION.match(after) if isinstance(after, nodes.Text) else None
        if mark and len(formula.astext()) <= LONGEST_UNBROKEN:
            whole = nodes.inline(classes=["unbroken"])
            at = parent.index(formula)
            parent[at : at + 2] = [whole, nodes.Text(after[mark.end() :])]
            whole += [formula, nodes.Text(mark[0])]


def start_server(folder: Path, timeout: float) -> tuple[Any, socket.socket]:
    """Start Node and return it with a connection to it; the extension's own timeout is too short to use.

    Raises
    ------
    KaTeXError
        If it does not answer within a minute.
    """
    address = folder / "katex.sock"
    process = Popen(katex.KaTeXServer.build_command(socket=address), stdin=PIPE, stdout=PIPE, cwd=folder)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            connection.connect(str(address))
            return process, connection
        connection.close()
        time.sleep(PAUSE_SECONDS)
    process.kill()
    raise katex.KaTeXServer.timeout_error(START_SECONDS)
