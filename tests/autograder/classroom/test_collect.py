"""Collecting from nbgrader's own exchange, and due dates."""

import getpass
import shutil

import pytest

from autograder import cli
from autograder.classroom import collect
from autograder.errors import UsageError

LAB = "lab01_halves"


@pytest.fixture
def exchange(tmp_path, monkeypatch):
    """An exchange of this test's own, which nbgrader finds by its configuration."""
    root, settings = tmp_path / "exchange", tmp_path / "jupyter"
    root.mkdir(mode=0o777)
    root.chmod(0o777)
    settings.mkdir()
    (settings / "nbgrader_config.py").write_text(f"c = get_config()\nc.Exchange.root = {str(root)!r}\n")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(settings))
    monkeypatch.setenv("USER", getpass.getuser())
    return root


@pytest.mark.slow
def test_the_command_collects_what_students_submitted_to_the_exchange(exchange, released_course, tmp_path, capsys):
    inbound = exchange / "fp4kv" / "inbound"  # the course_id that nbgrader_config.py sets
    entry = inbound / f"ada+{LAB}+2026-05-01 10:00:00.000000 UTC"
    shutil.copytree(released_course.release / LAB, entry)
    (entry / "timestamp.txt").write_text("2026-05-01 10:00:00.000000 UTC")

    first = collect.from_exchange(released_course, LAB)
    second = collect.from_exchange(released_course, LAB)

    assert (first.collected, second.collected) == (["ada"], [])
    assert (released_course.submitted / "ada" / LAB / f"{LAB}.ipynb").is_file()


def test_due_without_a_zone_is_utc(released_course):
    collect.set_due(released_course, LAB, "2026-05-20T12:00")

    assert collect.due_date(released_course, LAB).isoformat() == "2026-05-20T12:00:00+00:00"


@pytest.mark.parametrize("text", ["tomorrow", "2026-13-01"])
def test_due_that_is_no_time_is_wrong_usage(text, released_course):
    with pytest.raises(UsageError, match="--due"):
        collect.set_due(released_course, LAB, text)


def test_due_of_a_lab_that_was_not_released_is_wrong_usage(small_course, capsys):
    arguments = ["collect", LAB, "--due", "2026-05-20", "--course", str(small_course.root)]

    assert cli.run(arguments) == 64
    assert f"autograder release {LAB}" in capsys.readouterr().err
