"""The released notebooks in a real browser: JupyterLab opens each and starts its kernel without a question."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

LABS = sorted(path.stem for path in (Path(__file__).parents[3] / "labs").glob("lab*/lab*.ipynb"))
TOKEN = "a-test"
START_SECONDS = 120
KERNEL_IS_IDLE = """() => {
    const panel = window.jupyterapp && window.jupyterapp.shell.currentWidget;
    const session = panel && panel.sessionContext && panel.sessionContext.session;
    return Boolean(session && session.kernel && session.kernel.status === 'idle');
}"""


@pytest.fixture
def server(project, tmp_path) -> Iterator[str]:
    """The address of a JupyterLab that serves a folder with the released notebooks, with a home of its own."""
    folder = tmp_path / "student"
    folder.mkdir()
    for lab in LABS:
        shutil.copy(project / "labs" / lab / f"{lab}.ipynb", folder)
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    names = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    environment = {**os.environ, **{name: str(tmp_path / name) for name in names}}
    options = ["--no-browser", "--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={TOKEN}", "--allow-root"]
    command = [Path(sys.executable).with_name("jupyter-lab"), *options, "--LabApp.expose_app_in_browser=True"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        wait_until_up(f"http://127.0.0.1:{port}/api/status?token={TOKEN}", process, tmp_path / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def wait_until_up(address: str, process: subprocess.Popen, log: Path) -> None:
    for _ in range(START_SECONDS * 4):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            assert process.poll() is None, log.read_text()
            time.sleep(0.25)
    pytest.fail(f"JupyterLab did not start: {log.read_text()}")


@pytest.mark.browser
@pytest.mark.slow
def test_jupyterlab_opens_every_lab_without_a_kernel_dialog(server, chromium):
    page = chromium.new_page()
    for lab in LABS:
        page.goto(f"{server}/lab/tree/{lab}.ipynb?token={TOKEN}")
        page.wait_for_function(KERNEL_IS_IDLE, timeout=START_SECONDS * 1000)
        assert page.locator(".jp-Dialog").count() == 0, lab
        assert page.locator(".jp-Notebook .jp-Cell").count() > 0, lab
    page.close()
