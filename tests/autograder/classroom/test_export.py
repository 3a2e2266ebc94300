"""What an LMS imports: its columns, its blanks, late penalties taken off."""

import csv
import io

import pytest

from autograder import cli
from autograder.classroom import export, roster
from autograder.classroom.roster import Person
from autograder.cli.command import Exit
from autograder.gradebook.marks import Mark, opened
from autograder.outcome import Outcome

LAB = "lab01_halves"
MARKS = [
    Mark("ada", "Ada", "A", "ada@example.org", "11", score=7.5, max_score=8, late_penalty=2.25),
    Mark("bo", "Bo", "B, von", "", "22", score=6, max_score=8, needs_marking=True),
    Mark("cy", "Cy", "C"),
    Mark("di", score=1, max_score=8, late_penalty=3),
]


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_csv_holds_everything_and_no_zero_for_nothing():
    assert rows(export.as_csv(MARKS, "lab")) == [
        ["id", "last_name", "first_name", "email", "lab", "max_score", "late_penalty", "needs_marking"],
        ["ada", "A", "Ada", "ada@example.org", "5.25", "8", "2.25", "no"],
        ["bo", "B, von", "Bo", "", "6", "8", "0", "yes"],
        ["cy", "C", "Cy", "", "", "0", "0", "no"],
        ["di", "", "", "", "0", "8", "3", "no"],
    ]


def test_canvas_gets_its_columns_its_possible_points_and_blanks():
    assert rows(export.as_canvas(MARKS, "Lab 2 (4711)")) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Lab 2 (4711)"],
        ["    Points Possible", "", "", "", "", "8"],
        ["A, Ada", "11", "", "ada", "", "5.25"],
        ["B, von, Bo", "22", "", "bo", "", ""],
        ["C, Cy", "", "", "cy", "", ""],
        [", ", "", "", "di", "", "0"],
    ]


def test_moodle_gets_its_columns_and_blanks():
    assert rows(export.as_moodle(MARKS, "Lab 2")) == [
        ["First name", "Surname", "ID number", "Email address", "Assignment: Lab 2 (Real)"],
        ["Ada", "A", "ada", "ada@example.org", "5.25"],
        ["Bo", "B, von", "bo", "", ""],
        ["Cy", "C", "cy", "", ""],
        ["", "", "di", "", "0"],
    ]


@pytest.fixture
def course(released_course):
    """A gradebook in which one is graded, one was not gradable after a graded attempt, one did nothing."""
    roster.enter(released_course, [Person("ada", "Ada", "A"), Person("bo"), Person("cy")])
    with opened(released_course) as book:
        for student in ("ada", "bo"):
            book.add_submission(LAB, student)
            book.find_grade("halve-values", LAB, LAB, student).auto_score = 2
            book.find_grade("explain-why", LAB, LAB, student).manual_score = 1.5
            for grade in book.find_submission_notebook(LAB, LAB, student).grades:
                grade.needs_manual_grade = False
    lost = Outcome("bo", LAB, "h", "v", "not_graded", reason="torn", fault="submission")
    lost.write(released_course.outcome_file(LAB, "bo"))
    return released_course


def test_gather_reads_points_of_judge_and_person_from_the_gradebook(course):
    (ada, *_) = export.gather(course, LAB)

    assert (ada.student, ada.score, ada.max_score, ada.needs_marking) == ("ada", 3.5, 8, False)


def test_whoever_was_not_graded_exports_a_blank_whatever_the_gradebook_holds(course):
    assert {mark.student: mark.final for mark in export.gather(course, LAB)} == {"ada": 3.5, "bo": None, "cy": None}


def test_a_course_without_students_is_no_export(tmp_path, project, capsys):
    """A mistyped folder is not made and not called a success."""
    mistyped = tmp_path / "curse"
    assert cli.run(["export", "lab02_formats", "--course", str(mistyped)]) == Exit.USAGE
    assert f"expected students in the gradebook of {mistyped}" in capsys.readouterr().err
    assert not (mistyped / ".autograder" / "exports").exists()


def test_the_command_writes_where_it_says(course, capsys):
    assert cli.run(["export", LAB, "--format", "moodle", "--course", str(course.root)]) == 0

    path = course.private / "exports" / f"{LAB}-moodle.csv"
    assert capsys.readouterr().out == f"exported {LAB}: {path}\n"
    assert rows(path.read_text())[1] == ["Ada", "A", "ada", "", "3.5"]


def test_the_command_prints_the_file_and_nothing_else(course, capsys):
    cli.run(["export", LAB, "--format", "canvas", "--title", "Lab (1)", "--to", "-", "--course", str(course.root)])

    assert rows(capsys.readouterr().out)[0][-1] == "Lab (1)"
