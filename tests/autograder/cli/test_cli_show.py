"""What the commands print: texts of students are text, counts are right, JSON is the schema's."""

import json

import jsonschema
import pytest

from autograder.classroom.fleet import Change, ClassRun
from autograder.cli import show
from autograder.cli.command import Exit
from autograder.cli.marking import outcome_status
from autograder.outcome import CheckResult, Outcome, load_schema

ESCAPE = "\x1b[2J\x1b]0;owned\x07"
MARKUP = "[bold red]loud[/]"


def outcome(student: str = "ada", *statuses: str, **fields) -> Outcome:
    checks = [
        CheckResult(f"halve-p{number}", 1.0 if status == "passed" else 0.0, 1.0, status, f"halve-p{number}: said")
        for number, status in enumerate(statuses)
    ]
    return Outcome(student, "lab01_halves", "h", "v", fields.pop("state", "graded"), checks, **fields)


LOST = outcome("cy", state="not_graded", fault="submission", reason="not JSON")
OURS = outcome("di", state="not_graded", fault="infrastructure", reason="no sandbox")


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (outcome("ada", "passed"), Exit.YES),
        (outcome("ada", "passed", "failed"), Exit.NO),
        (LOST, Exit.NOT_GRADABLE),
        (OURS, Exit.FAILURE),
    ],
    ids=["full marks", "below", "not gradable", "our failure"],
)
def test_the_status_of_an_outcome(found, status):
    assert outcome_status(found) is status


def test_control_sequences_and_markup_of_a_student_are_text(capsys):
    show.outcome(outcome("ada", "failed", notes=[ESCAPE], suspicions=[MARKUP]))
    show.class_run(ClassRun("lab01_halves", [outcome(MARKUP, "failed", suspicions=[ESCAPE])], {MARKUP: "new"}))

    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "\x07" not in told
    assert told.count(MARKUP) == 3


def test_an_outcome_shows_each_check_and_the_messages_of_those_not_passed(capsys):
    show.outcome(outcome("ada", "passed", "timed_out"))

    told = capsys.readouterr().out
    assert "halve-p0: said" not in told
    assert "halve-p1: said" in told
    assert "timed out" in told
    assert "1 of 2 points" in told


def test_a_class_shows_why_each_was_graded(capsys):
    run = ClassRun("lab01_halves", [outcome("ada", "passed"), outcome("bo", "failed"), LOST], {"bo": "checks changed"})

    show.class_run(run)

    told = capsys.readouterr().out
    assert "1 graded, 2 unchanged" in told
    assert "checks changed: bo" in told
    assert "not JSON" in told


def test_json_of_a_class_is_a_list_of_documents_of_the_schema(capsys):
    show.outcomes_json([outcome("ada", "passed"), LOST])

    for document in json.loads(capsys.readouterr().out):
        jsonschema.validate(document, load_schema())


def test_a_change_names_the_checks_that_made_it(capsys):
    change = Change("ada", outcome("ada", "passed", "failed"), outcome("ada", "failed", "passed"))

    assert change.checks == [("halve-p0", "passed", "failed", -1.0), ("halve-p1", "failed", "passed", 1.0)]
    show.regrade([change], kept=False)
    told = capsys.readouterr().out
    assert "halve-p1 failed → passed (+1)" in told
    assert "as it was" in told


def test_a_check_that_is_new_or_gone_counts_as_a_change():
    before, after = outcome("ada", "passed"), outcome("ada", "passed", "passed")

    assert Change("ada", before, after).checks == [("halve-p1", "-", "passed", 1.0)]
    assert Change("ada", after, before).checks == [("halve-p1", "passed", "-", -1.0)]


def test_progress_counts_by_status_on_standard_error(capsys):
    with show.Progress() as progress:
        progress.planned(type("Plan", (), {"tasks": [1, 2], "unreadable": [3]}))
        for found in (outcome("ada", "passed"), outcome("bo", "failed"), LOST):
            progress.finished(found)

    told = capsys.readouterr()
    assert told.out == ""
    assert "3/3" in told.err
    for words in ("1 full marks", "1 below", "1 not graded"):
        assert words in told.err


def test_progress_shows_no_bar_where_there_is_nothing_to_do(capsys):
    with show.Progress() as progress:
        progress.planned(type("Plan", (), {"tasks": [], "unreadable": []}))

    assert capsys.readouterr().err == ""
