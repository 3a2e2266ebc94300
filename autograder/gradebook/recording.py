"""Enter a verdict into nbgrader's gradebook: every way of grading ends in `record`.

One transaction under a course lock, through nbgrader's own API. Order on disk: the judged notebook,
then the commit, then `outcome.json`; whatever happens between them, the next run grades again.

What was not graded never touches the gradebook: no row, no zero, and the marks that an earlier
submission earned stand until a readable one replaces them. Formgrader lists it as not autograded.
"""

import fcntl
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import compute_checksum, parse_utc
from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import scoped_session, sessionmaker
from traitlets.config import Config

from autograder.course import Course
from autograder.errors import CourseError, UsageError
from autograder.gradebook.nbgrader_course import course_directory, read_config
from autograder.grading import Graded
from autograder.intake.match import grade_id, is_answer, is_task
from autograder.outcome import Outcome

STUDENT_ID = re.compile(r"[^\W_][\w.@+ -]{0,127}")
"""Letters and digits of any script, and what stands in addresses: formgrader prints ids as they are."""
NO_RESPONSE = "No response."
ANSWER_SUFFIX = "-answer"
"""What the id of the free cell under a task ends with; a task's own id comes before."""


def record(
    course: Course, graded: Graded, *, directory: CourseDirectory | None = None, config: Config | None = None
) -> Outcome:
    """Enter one graded submission: scores, late penalty, judged notebook, outcome; return the outcome.

    Marks and comments by a person stay. They are put up for review where the answer they are
    about has changed. A submission that was not graded only gets its outcome on file.

    Parameters
    ----------
    directory, config: nbgrader's, where nbgrader itself calls; otherwise they are read from the
        project's `nbgrader_config.py`.

    Raises
    ------
    CourseError
        If the lab is not in the gradebook as it was graded: it must be released first.
    UsageError
        If the student's id is no name of a folder.
    """
    config = config or read_config(course)
    directory = directory or course_directory(course, config)
    outcome = graded.outcome
    if Path(outcome.student).name != outcome.student or outcome.student in ("", ".", ".."):
        raise UsageError(f"student id: expected the name of a folder, got {outcome.student!a}")
    if outcome.state == "graded" and not STUDENT_ID.fullmatch(outcome.student):
        outcome = _refused(outcome)
    with course_lock(course):
        if graded.notebook is not None and outcome.state == "graded":
            _enter(directory, config, outcome, graded.notebook)
        outcome.write(course.outcome_file(outcome.lab, outcome.student))
    return outcome


@contextmanager
def course_lock(course: Course) -> Iterator[None]:
    """Hold the course's lock: one process at a time enters results."""
    course.private.mkdir(parents=True, exist_ok=True)
    with (course.private / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # given back when the file closes, or the process dies
        yield


@contextmanager
def gradebook_transaction(directory: CourseDirectory) -> Iterator[Gradebook]:
    """Open the gradebook so that all that is done through its API is committed at once, or not at all.

    Raises
    ------
    CourseError
        If the database cannot be used.
    """
    file = make_url(directory.db_url).database
    if directory.db_url.startswith("sqlite") and not (file and Path(file).is_file()):
        raise CourseError(f"gradebook: expected {file}, found none; run: autograder release LAB")
    try:
        with Gradebook(directory.db_url, directory.course_id or "default_course") as gradebook:
            yield from _joined_to_one_transaction(gradebook)
    except OperationalError as error:
        raise CourseError(
            f"gradebook: expected a database at {directory.db_url}, got {error.orig}; "
            "if it is locked, close formgrader's writers; if it is old, run: nbgrader db upgrade"
        ) from error


def _joined_to_one_transaction(gradebook: Gradebook) -> Iterator[Gradebook]:
    """Yield a gradebook whose commits are only flushes: nbgrader commits after each call of its API."""
    with gradebook.engine.connect() as connection, connection.begin():
        gradebook.db = scoped_session(sessionmaker(connection, autoflush=False, join_transaction_mode="rollback_only"))
        try:
            yield gradebook
            gradebook.db.commit()
        finally:
            gradebook.db.remove()


def _enter(directory: CourseDirectory, config: Config, outcome: Outcome, notebook: NotebookNode) -> None:
    folder = Path(directory.format_path(directory.autograded_directory, outcome.student, outcome.lab))
    target = folder / f"{outcome.lab}.ipynb"
    before = _read_judged(target)
    submitted = Path(directory.format_path(directory.submitted_directory, outcome.student, outcome.lab))
    stamp = _read_stamp(submitted / "timestamp.txt")
    with gradebook_transaction(directory) as gradebook:
        submission = _open_submission(gradebook, outcome, stamp)
        _enter_scores(gradebook, outcome)
        _enter_comments(gradebook, outcome, notebook)
        _ask_for_review(gradebook, outcome, before, notebook)
        gradebook.db.flush()
        gradebook.db.expire_all()
        _enter_late_penalty(gradebook, config, outcome, submission)
        _write_judged(target, notebook, stamp)


def _open_submission(gradebook: Gradebook, outcome: Outcome, stamp: str) -> SubmittedAssignment:
    try:
        gradebook.find_assignment(outcome.lab)
    except MissingEntry:
        raise CourseError(f"{outcome.lab}: not in the gradebook; run: autograder release {outcome.lab}") from None
    gradebook.update_or_create_student(outcome.student)
    given = {"timestamp": parse_utc(stamp)} if stamp else {}
    return gradebook.update_or_create_submission(outcome.lab, outcome.student, **given)


def _enter_scores(gradebook: Gradebook, outcome: Outcome) -> None:
    for result in outcome.checks:
        try:
            grade = gradebook.find_grade(result.id, outcome.lab, outcome.lab, outcome.student)
        except MissingEntry:
            raise CourseError(f"{result.id}: not in the gradebook; run: autograder release {outcome.lab}") from None
        if grade.max_score != result.max_points:
            raise CourseError(
                f"{result.id}: expected {grade.max_score:g} points as in the gradebook, got {result.max_points:g}; "
                f"run: autograder release {outcome.lab}"
            )
        if grade.manual_score is None:
            grade.needs_manual_grade = False
        elif grade.auto_score != result.points:
            grade.needs_manual_grade = True
        grade.auto_score = result.points


def _enter_comments(gradebook: Gradebook, outcome: Outcome, notebook: NotebookNode) -> None:
    """Say so where nothing was answered; a person's comment takes precedence over this one."""
    for cell in notebook.cells:
        if is_answer(cell):
            comment = gradebook.find_comment(grade_id(cell), outcome.lab, outcome.lab, outcome.student)
            untouched = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
            comment.auto_comment = NO_RESPONSE if untouched else None


def _ask_for_review(
    gradebook: Gradebook, outcome: Outcome, before: NotebookNode | None, notebook: NotebookNode
) -> None:
    """Put a person's mark of a task up for review if what was answered is not what they read."""
    answers = task_answers(notebook)
    earlier = task_answers(before) if before is not None else {}
    for task, answer in answers.items():
        grade = gradebook.find_grade(task, outcome.lab, outcome.lab, outcome.student)
        if grade.manual_score is None or earlier.get(task) != answer:
            grade.needs_manual_grade = True


def task_answers(notebook: NotebookNode) -> dict[str, str]:
    """Return what stands under each task, up to the next graded cell or the next given text."""
    answers: dict[str, list[str]] = {}
    task = ""
    for cell in notebook.cells:
        if is_task(cell):
            task = grade_id(cell)
            answers[task] = []
        elif task and (grade_id(cell) or not _is_answer_text(cell, task)):
            task = ""
        elif task:
            answers[task].append(cell.source)
    return {name: "\n".join(texts) for name, texts in answers.items()}


def _is_answer_text(cell: NotebookNode, task: str) -> bool:
    """Tell whether a cell is the one for a task's answer, or one that the student added to it."""
    return str(cell.get("id", "")) == task + ANSWER_SUFFIX or str(cell.get("id", "")).startswith("added-")


def _enter_late_penalty(
    gradebook: Gradebook, config: Config, outcome: Outcome, submission: SubmittedAssignment
) -> None:
    """Let nbgrader's plug-in decide, on the score that is in the gradebook now."""
    notebook = gradebook.find_submission_notebook(outcome.lab, outcome.lab, outcome.student)
    notebook.late_submission_penalty = None
    if submission.total_seconds_late > 0:
        step = AssignLatePenalties(config=config)
        step.init_plugin()
        penalty = step.plugin_inst.late_submission_penalty(
            outcome.student, notebook.score, submission.total_seconds_late
        )
        if penalty is not None:
            notebook.late_submission_penalty = step._check_late_penalty(notebook, penalty)


def _read_judged(path: Path) -> NotebookNode | None:
    return nbformat.read(path, 4) if path.is_file() else None


def _read_stamp(path: Path) -> str:
    """Return when a submission was handed in, as nbgrader's collect noted it; empty if it did not."""
    if path.is_symlink() or not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8", errors="replace").strip()[:100]
    try:
        parse_utc(text)
    except (ValueError, OverflowError):
        return ""
    return text


def _write_judged(path: Path, notebook: NotebookNode, stamp: str) -> None:
    """Write the judged notebook alone: files of a student that formgrader would serve are not copied."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for file, text in ((path, nbformat.writes(notebook) + "\n"), (path.parent / "timestamp.txt", stamp)):
        if text:
            temporary = file.with_name(f".{file.name}.new")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(file)


def _refused(outcome: Outcome) -> Outcome:
    reason = (
        f"student id: expected letters, digits and . @ + - _ (nbgrader prints ids as they are), got {outcome.student!a}"
    )
    return replace(outcome, state="not_graded", fault="submission", reason=reason, checks=[])
