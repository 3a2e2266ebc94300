"""The command line as a whole: help, examples, wrong usage, exit statuses."""

import re
import tomllib
from pathlib import Path

import click
import pytest

from autograder import cli
from autograder.cli.command import Command, Exit
from autograder.errors import AutograderError, CourseError, SandboxError, SubmissionError, UsageError

PROJECT = Path(__file__).resolve().parents[3]
COMMANDS = sorted(cli.autograder.commands)
EXAMPLES = [(name, example) for name in COMMANDS for example in cli.autograder.commands[name].examples]
DESIGNED = [
    *["doctor", "build", "check", "release", "collect", "roster", "grade", "regrade", "feedback", "report", "export"],
    *["new-lab", "publish"],
]


@pytest.mark.parametrize("name", DESIGNED)
def test_every_designed_command_exists(name):
    assert name in cli.autograder.commands


@pytest.mark.parametrize("name", COMMANDS)
def test_help_describes_and_shows_an_example(name, capsys):
    assert cli.run([name, "--help"]) == Exit.YES

    told = capsys.readouterr()
    description = told.out.split("\n\n")[1]
    assert len(description.split()) >= 4, told.out
    assert re.search(rf"^Examples:\n  autograder {name}\b", told.out, re.MULTILINE), told.out
    assert told.err == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_the_whole_shows_each_description_untruncated(name, capsys):
    cli.run(["--help"])

    listed = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(f"  {name} "))
    assert listed.endswith("."), listed
    assert "..." not in listed, listed


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_every_example_parses(name, example):
    context = cli.autograder.commands[name].parse_example(example)

    assert context.command.name == name


def test_an_example_that_does_not_parse_is_found():
    broken = Command("grade", params=[click.Argument(["lab"])], examples=())

    with pytest.raises(click.ClickException):
        broken.parse_example("autograder grade lab02_formats --no-such-option")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_a_course(name):
    assert "--course" in {option for param in cli.autograder.commands[name].params for option in param.opts}


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["grade"],
        ["grade", "lab02_formats", "--workers", "0"],
        ["grade", "lab02_formats", "--scheduler", "tcp://127.0.0.1:8786"],
        ["grade", "lab02_formats", "--scheduler", ""],
        ["grade", "lab02_formats", "--scheduler", "tls://127.0.0.1:8786", "--workers", "2"],
        ["check", "x.ipynb"],
        ["check", "x.ipynb", "--lab", "no_such_lab"],
        ["check", "x.ipynb", "--lab", "lab02_formats", "--sandbox", "docker"],
        ["export", "lab02_formats", "--format", "excel"],
        ["grade", "lab02_formats", "--course", str(Path(__file__))],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_64_and_is_told_on_standard_error(arguments, capsys):
    assert cli.run(arguments) == Exit.USAGE

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.strip()
    assert "Traceback" not in told.err


@pytest.mark.parametrize(("wrong", "right"), [("grad", "grade"), ("raport", "report"), ("newlab", "new-lab")])
def test_a_misspelt_command_is_answered_with_the_right_one(wrong, right, capsys):
    cli.run([wrong])

    assert f"'{right}'" in capsys.readouterr().err


def test_a_misspelt_lab_is_answered_with_the_right_one(capsys):
    cli.run(["report", "lab2_formats"])

    assert "did you mean lab02_formats?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UsageError("course: expected one"), 64),
        (CourseError("checks: expected a file"), 3),
        (SubmissionError("notebook: expected JSON"), 2),
        (SandboxError("bwrap: expected it to start"), 3),
        (click.Abort(), 130),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError("a bug"), 3),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_an_error_leaves_with_its_status_and_one_message(error, status, monkeypatch, capsys):
    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(cli.autograder, "main", fail)

    assert cli.run([]) == status
    message = capsys.readouterr().err
    assert message.count("autograder: ") == 1
    if isinstance(error, AutograderError):
        assert str(error) in message
        assert "Traceback" not in message


def test_the_console_script_is_the_command_line():
    scripts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["scripts"]

    assert scripts["autograder"] == "autograder.cli:main"
