"""The same walls for a grader who is not root: a part of this suite again, under another uid."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from autograder.sandbox import privileges

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

USER = 1_999_999_999  # nobody's
REPRESENTATIVE = (
    "forbidden_calls or no_reference or stays_inside or fork or children or memory or detached or swallows or segfault "
    "or (harmless and shell) or hog or 50 or restarted or prints_later or equals_everything or leads_to "
    "or forged_report"
)


@pytest.mark.skipif(os.getuid() != 0, reason="the whole suite runs as an ordinary user already")
def test_suite_passes_as_an_ordinary_user(project, prefix):
    """A private mount namespace opens the checkout to that user, wherever it lies."""
    base = Path(sys.executable).resolve().parent.parent
    folders = sorted({str(project), sys.prefix, str(base), str(prefix)}, key=len)
    with tempfile.TemporaryDirectory(prefix="au-", dir="/tmp") as home:
        stage, own = Path(home, "stage"), Path(home, "own")
        for folder in (stage, own):
            folder.mkdir()
        Path(home).chmod(0o755)
        os.chown(own, USER, USER)
        done = subprocess.run(
            [
                *privileges.give_root_away(folders, str(stage), USER),
                *[sys.executable, "-m", "pytest", str(Path(__file__).parent), "-k", REPRESENTATIVE, "-q"],
                *["-p", "no:cacheprovider", "-p", "no:randomly", "--basetemp", f"{own}/pytest", "--durations=0"],
            ],
            cwd=project,
            env={**os.environ, "HOME": str(own), "PYTHONDONTWRITEBYTECODE": "1", "AUTOGRADER_TEST_PREFIX": str(prefix)},
            capture_output=True,
            text=True,
            timeout=280,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "failed" not in done.stdout
