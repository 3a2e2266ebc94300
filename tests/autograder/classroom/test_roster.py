"""A CSV file of students into a real gradebook: three dialects, every wrong line named, all or nothing."""

import pytest
from nbgrader.api import Gradebook

from autograder import cli
from autograder.classroom import roster
from autograder.classroom.roster import Person
from autograder.course import Course
from autograder.errors import UsageError

OURS = "id,first_name,last_name,email,lms_user_id\na1,Ada,A,a1@example.org,11\nb2,Bo,B,,\n"
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,lab02\n"
    "    Points Possible,,,,,10\n"
    '"A, Ada",11,x,a1,S1,\n'
    '"Student, Test",99,,,S1,\n'
)
MOODLE = "Identifier,Full name,ID number,Email address,Status\nParticipant 11,Ada van A,a1,a1@example.org,-\n"


@pytest.fixture
def course(tmp_path, project) -> Course:
    """An empty course of this project."""
    return Course(tmp_path / "course", project)


@pytest.fixture
def write(tmp_path):
    """Write a CSV file and return its path."""

    def write(text: str, encoding: str = "utf-8"):
        path = tmp_path / "students.csv"
        path.write_text(text, encoding=encoding)
        return path

    return write


def students(course: Course) -> dict[str, tuple[str | None, ...]]:
    with Gradebook(course.database_url) as book:
        return {s.id: (s.first_name, s.last_name, s.email, s.lms_user_id) for s in book.students}


@pytest.mark.parametrize(
    ("text", "people"),
    [
        (OURS, [Person("a1", "Ada", "A", "a1@example.org", "11"), Person("b2", "Bo", "B")]),
        (CANVAS, [Person("a1", "Ada", "A", "", "11")]),
        (MOODLE, [Person("a1", "Ada van", "A", "a1@example.org", "11")]),
    ],
    ids=["ours", "canvas", "moodle"],
)
def test_read_understands_each_dialect(text, people, write):
    assert roster.read(write(text)) == people


def test_read_takes_the_mark_that_spreadsheets_put_first(write):
    assert [person.id for person in roster.read(write(OURS, encoding="utf-8-sig"))] == ["a1", "b2"]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("name\nAda\n", ["students.csv:1: expected a column of ids"]),
        (
            "id,email\n,x@y\n../up,x@y\nok,nowhere\n",
            ["students.csv:2: id:", "students.csv:3: id:", "students.csv:4: email:"],
        ),
        ("id,first_name\na,<script>\nb,=cmd()\n", ["students.csv:2: first_name:", "students.csv:3: first_name:"]),
        ("id\na\nb\na\n", ["students.csv:2: id: expected each once", "students.csv:4: id: expected each once"]),
        ("id,lms_user_id\na,7\nb,7\n", ["students.csv:2: lms_user_id:", "students.csv:3: lms_user_id:"]),
        ("id\na+b\n", ["students.csv:2: id:"]),
    ],
    ids=["no ids", "wrong values", "live text", "twice", "same number", "plus"],
)
def test_read_names_every_wrong_line(text, messages, write):
    with pytest.raises(UsageError) as refused:
        roster.read(write(text))

    for message in messages:
        assert message in str(refused.value)


def test_read_refuses_what_is_not_text(tmp_path):
    path = tmp_path / "students.csv"
    path.write_bytes(b"id\n\xff\xfe\n")

    with pytest.raises(UsageError, match="UTF-8"):
        roster.read(path)


def test_enter_adds_then_changes_then_leaves_alone(course):
    assert roster.enter(course, [Person("a1", "Ada", "A"), Person("b2")]) == (["a1", "b2"], [])
    assert roster.enter(course, [Person("a1", "Ada", "B"), Person("b2")]) == ([], ["a1"])
    assert roster.enter(course, [Person("a1", "Ada", "B")]) == ([], [])
    assert students(course) == {"a1": ("Ada", "B", None, None), "b2": (None, None, None, None)}


def test_enter_keeps_what_a_file_does_not_say(course):
    roster.enter(course, [Person("a1", "Ada", "A", "a1@example.org", "11")])
    roster.enter(course, [Person("a1", last_name="B")])

    assert students(course) == {"a1": ("Ada", "B", "a1@example.org", "11")}


def test_the_command_enters_nothing_from_a_file_with_a_wrong_line(course, write, capsys):
    path = write("id\ngood\n-bad\n")

    assert cli.run(["roster", str(path), "--course", str(course.root)]) == 64
    assert "students.csv:3" in capsys.readouterr().err
    assert not (course.root / "gradebook.db").exists()


def test_the_command_says_how_many_it_entered(course, write, capsys):
    assert cli.run(["roster", str(write(OURS)), "--course", str(course.root)]) == 0
    assert capsys.readouterr().out == "roster: 2 added, 0 changed\n"
