"""Entering verdicts: one transaction, nbgrader's own API, a person's marks safe, never a zero of ours."""

import copy
import fcntl
import multiprocessing
import sqlite3
from datetime import UTC, datetime

import nbformat
import pytest
from nbgrader.api import Gradebook, MissingEntry

from autograder.course import Course
from autograder.errors import CourseError, UsageError
from autograder.gradebook import recording as module
from autograder.gradebook.nbgrader_course import course_directory, read_config
from autograder.gradebook.recording import record, task_answers
from autograder.grading import Graded, not_graded
from autograder.lab import load_lab
from autograder.outcome import CheckResult, Outcome

LAB = "lab01_halves"


@pytest.fixture
def lab(released_course):
    return load_lab(released_course, LAB)


def graded(lab, notebook, student="ada", lost=()):
    """Return a verdict in which every check is passed but the lost ones."""
    outcome = not_graded(lab, student, "0" * 64, "", "")
    outcome.state = "graded"
    outcome.checks = [
        CheckResult(c.id, 0 if c.id in lost else c.points, c.points, "failed" if c.id in lost else "passed")
        for c in lab.checks
    ]
    return Graded(outcome, notebook)


def open_gradebook(course):
    directory = course_directory(course, read_config(course))
    return Gradebook(directory.db_url, directory.course_id)


def grades(course, student="ada"):
    """Return (auto, manual, needs a person) by cell."""
    with open_gradebook(course) as book:
        notebook = book.find_submission_notebook(LAB, LAB, student)
        return {g.name: (g.auto_score, g.manual_score, g.needs_manual_grade) for g in notebook.grades}


def comments(course, student="ada"):
    with open_gradebook(course) as book:
        return {c.name: c.comment for c in book.find_submission_notebook(LAB, LAB, student).comments}


def mark(course, cell, score, comment=None, student="ada"):
    """Do what a person does in formgrader."""
    with open_gradebook(course) as book:
        grade = book.find_grade(cell, LAB, LAB, student)
        grade.manual_score, grade.needs_manual_grade = score, False
        if comment:
            book.find_comment(cell, LAB, LAB, student).manual_comment = comment
        book.db.commit()


def with_answer(notebook, text):
    changed = copy.deepcopy(notebook)
    next(cell for cell in changed.cells if cell.id == "explain-why-answer").source = text
    return changed


def test_record_enters_scores_of_a_new_student(released_course, lab, solved):
    record(released_course, graded(lab, solved, lost=["halve-refuses"]))
    assert grades(released_course) == {
        "halve-values": (2, None, False),
        "halve-refuses": (0, None, False),
        "halve_all-values": (2, None, False),
        "halvings-count": (1, None, False),
        "explain-why": (None, None, True),
    }
    with open_gradebook(released_course) as book:
        assert (book.find_submission(LAB, "ada").score, book.find_submission(LAB, "ada").max_score) == (5, 8)


def test_record_writes_outcome_and_judged_notebook(released_course, lab, solved):
    returned = record(released_course, graded(lab, solved))
    assert Outcome.from_json(released_course.outcome_file(LAB, "ada").read_bytes()) == returned
    judged = released_course.autograded / "ada" / LAB / f"{LAB}.ipynb"
    assert nbformat.read(judged, 4) == solved
    assert [path.name for path in judged.parent.iterdir()] == [judged.name]


def test_unanswered_cells_are_named(released_course, lab):
    record(released_course, graded(lab, lab.released))
    found = comments(released_course)
    assert {name for name, text in found.items() if text == "No response."} == {"halve", "halve_all", "halvings"}


def test_answered_cells_are_not(released_course, lab, solved):
    record(released_course, graded(lab, lab.released))
    record(released_course, graded(lab, solved))
    assert set(comments(released_course).values()) == {None}


def test_a_mark_survives_grading_again(released_course, lab, solved):
    record(released_course, graded(lab, solved))
    mark(released_course, "explain-why", 1.5, "good")
    record(released_course, graded(lab, solved, lost=["halve-values"]))
    assert grades(released_course)["explain-why"] == (None, 1.5, False)
    assert comments(released_course)["explain-why"] == "good"
    assert grades(released_course)["halve-values"] == (0, None, False)


def test_a_mark_is_put_up_for_review_when_the_answer_changed(released_course, lab, solved):
    record(released_course, graded(lab, solved))
    mark(released_course, "explain-why", 1.5, "good")
    record(released_course, graded(lab, with_answer(solved, "Something else.")))
    assert grades(released_course)["explain-why"] == (None, 1.5, True)
    assert comments(released_course)["explain-why"] == "good"


def test_a_mark_is_put_up_for_review_when_cells_were_added_to_the_answer(released_course, lab, solved):
    record(released_course, graded(lab, solved))
    mark(released_course, "explain-why", 1.5)
    solved.cells.append(nbformat.v4.new_markdown_cell("And more.", id="added-0099"))
    record(released_course, graded(lab, solved))
    assert grades(released_course)["explain-why"] == (None, 1.5, True)


def test_an_override_of_a_check_stays_and_is_reviewed_only_when_the_verdict_changed(released_course, lab, solved):
    record(released_course, graded(lab, solved, lost=["halve-values"]))
    mark(released_course, "halve-values", 1)
    record(released_course, graded(lab, solved, lost=["halve-values"]))
    assert grades(released_course)["halve-values"] == (0, 1, False)
    record(released_course, graded(lab, solved))
    assert grades(released_course)["halve-values"] == (2, 1, True)


@pytest.mark.parametrize("fault", ["submission", "infrastructure"])
def test_what_was_not_graded_enters_nothing(released_course, lab, fault):
    outcome = record(released_course, Graded(not_graded(lab, "ada", "", "reason", fault)))
    assert outcome.state == "not_graded"
    assert released_course.outcome_file(LAB, "ada").is_file()
    assert not (released_course.autograded / "ada").exists()
    with open_gradebook(released_course) as book, pytest.raises(MissingEntry):
        book.find_student("ada")


@pytest.mark.parametrize("fault", ["submission", "infrastructure"])
def test_what_was_not_graded_takes_nothing_away(released_course, lab, solved, fault):
    record(released_course, graded(lab, solved))
    before = grades(released_course)
    record(released_course, Graded(not_graded(lab, "ada", "", "reason", fault)))
    assert grades(released_course) == before


def test_a_lab_that_is_not_released_is_an_error(released_course, lab, solved):
    with open_gradebook(released_course) as book:
        book.remove_assignment(LAB)
    with pytest.raises(CourseError, match="autograder release lab01_halves"):
        record(released_course, graded(lab, solved))


def test_a_course_without_a_gradebook_is_an_error(released_course, lab, solved, tmp_path):
    with pytest.raises(CourseError, match=r"gradebook\.db, found none; run: autograder release"):
        record(Course(tmp_path / "elsewhere", released_course.project), graded(lab, solved))


def test_a_check_that_the_gradebook_does_not_know_is_an_error(released_course, lab, solved):
    verdict = graded(lab, solved)
    verdict.outcome.checks.append(CheckResult("halve-bonus", 1, 1, "passed"))
    with pytest.raises(CourseError, match=r"halve-bonus.*autograder release"):
        record(released_course, verdict)


def test_points_that_the_gradebook_does_not_know_are_an_error(released_course, lab, solved):
    verdict = graded(lab, solved)
    verdict.outcome.checks[0].max_points = 7
    with pytest.raises(CourseError, match="expected 2 points as in the gradebook, got 7"):
        record(released_course, verdict)


def test_a_failure_half_way_leaves_everything_as_it_was(released_course, lab, solved, monkeypatch):
    record(released_course, graded(lab, solved))
    before, outcome = grades(released_course), released_course.outcome_file(LAB, "ada").read_bytes()

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(module, "_write_judged", fail)
    with pytest.raises(OSError, match="disk full"):
        record(released_course, graded(lab, solved, lost=["halve-values", "halvings-count"]))
    with pytest.raises(OSError, match="disk full"):
        record(released_course, graded(lab, solved, student="new"))
    assert grades(released_course) == before
    assert released_course.outcome_file(LAB, "ada").read_bytes() == outcome
    with open_gradebook(released_course) as book, pytest.raises(MissingEntry):
        book.find_student("new")


def test_a_locked_database_is_our_fault_and_says_so(released_course, lab, solved, monkeypatch):
    monkeypatch.setattr(module, "Gradebook", impatient_gradebook)
    with sqlite3.connect(released_course.root / "gradebook.db", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CourseError, match="locked"):
            record(released_course, graded(lab, solved))
        other.execute("ROLLBACK")
    other.close()


def impatient_gradebook(url, course_id):
    return Gradebook(f"{url}?timeout=0.1", course_id)


def set_late_policy(course, due):
    with open_gradebook(course) as book:
        book.update_or_create_assignment(LAB, duedate=due)
    text = (
        "from nbgrader.plugins import BasePlugin\n\n\nclass Half(BasePlugin):\n"
        "    def late_submission_penalty(self, student_id, score, total_seconds_late):\n        return score / 2\n\n\n"
        "c.AssignLatePenalties.plugin_class = Half\n"
    )
    with (course.project / "nbgrader_config.py").open("a") as config:
        config.write(text)


@pytest.mark.parametrize(("stamp", "penalty"), [("2026-01-02 00:00:00 UTC", 3), ("2025-12-31 00:00:00 UTC", None)])
def test_late_penalties_come_from_nbgraders_plugin(released_course, lab, solved, stamp, penalty):
    set_late_policy(released_course, datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None))
    folder = released_course.submitted / "ada" / LAB
    folder.mkdir(parents=True)
    (folder / "timestamp.txt").write_text(stamp)
    record(released_course, graded(lab, solved))
    with open_gradebook(released_course) as book:
        assert book.find_submission(LAB, "ada").late_submission_penalty == (penalty or 0)
        assert str(book.find_submission(LAB, "ada").timestamp) == stamp.removesuffix(" UTC")
    assert (released_course.autograded / "ada" / LAB / "timestamp.txt").read_text() == stamp


@pytest.mark.parametrize("stamp", ["", "soon", "99999999999999999999", "2026-13-45 99:99:99"])
def test_a_broken_time_stamp_counts_as_none(released_course, lab, solved, stamp):
    folder = released_course.submitted / "ada" / LAB
    folder.mkdir(parents=True)
    (folder / "timestamp.txt").write_text(stamp)
    record(released_course, graded(lab, solved))
    with open_gradebook(released_course) as book:
        assert book.find_submission(LAB, "ada").timestamp is None


@pytest.mark.parametrize("student", ["<script>", "a'b", 'a"b', "a&b", " ", "a\nb", "_x"])
def test_an_id_that_formgrader_would_print_live_enters_nothing(released_course, lab, solved, student):
    outcome = record(released_course, graded(lab, solved, student=student))
    assert (outcome.state, outcome.fault) == ("not_graded", "submission") and "student id" in outcome.reason
    with open_gradebook(released_course) as book:
        assert book.students == []


@pytest.mark.parametrize("student", ["../ada", "..", "", "a/b"])
def test_an_id_that_is_no_folder_writes_nothing(released_course, lab, solved, student):
    before = sorted(released_course.project.rglob("*"))
    with pytest.raises(UsageError, match="student id"):
        record(released_course, graded(lab, solved, student=student))
    assert sorted(released_course.project.rglob("*")) == before


@pytest.mark.parametrize("student", ["ada", "4711", "a.b@c.org", "Ünal-Å 2", "x_1+y"])
def test_ordinary_ids_enter(released_course, lab, solved, student):
    record(released_course, graded(lab, solved, student=student))
    assert grades(released_course, student)["halve-values"] == (2, None, False)


def test_another_database_is_respected(released_course, lab, solved, tmp_path):
    other = tmp_path / "other.db"
    (released_course.root / "gradebook.db").rename(other)
    with (released_course.project / "nbgrader_config.py").open("a") as config:
        config.write(f"c.CourseDirectory.db_url = 'sqlite:///{other}'\n")
    record(released_course, graded(lab, solved))
    assert not (released_course.root / "gradebook.db").exists()
    assert grades(released_course)["halve-values"] == (2, None, False)


def record_many(course, names):
    lab = load_lab(course, LAB)
    for name in names:
        record(course, graded(lab, lab.released, student=name))


def test_many_processes_record_at_once(released_course, lab):
    names = [f"student{number:02}" for number in range(12)]
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=record_many, args=(released_course, names[start::4])) for start in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    with open_gradebook(released_course) as book:
        assert sorted(submission.student.id for submission in book.assignment_submissions(LAB)) == names


def test_task_answers_end_where_the_answer_does(solved):
    solved.cells.append(nbformat.v4.new_markdown_cell("And more.", id="added-0099"))
    solved.cells.append(nbformat.v4.new_markdown_cell("# Next", id="next-text-1"))
    solved.cells.append(nbformat.v4.new_markdown_cell("Not this.", id="added-0100"))
    assert task_answers(solved) == {"explain-why": "A half is a power of two.\nAnd more."}


def test_results_are_entered_under_the_courses_lock(released_course, lab, solved, monkeypatch):
    def find_locked(*args):
        with (released_course.private / "lock").open("w") as handle, pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        entered.append(args)

    entered = []
    monkeypatch.setattr(module, "_enter", find_locked)
    record(released_course, graded(lab, solved))
    assert len(entered) == 1
    with (released_course.private / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
