"""Commands that grade: one notebook, a class, a class again."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.cli.command import (
    Exit,
    command,
    json_option,
    lab_argument,
    scheduler_option,
    students_option,
    workers_option,
)
from autograder.course import Course
from autograder.errors import UsageError

if TYPE_CHECKING:
    from autograder.outcome import Outcome


@command(
    "check",
    examples=(
        "autograder check work.ipynb --lab lab02_formats",
        "autograder check work.ipynb --lab lab02_formats --json",
    ),
)
@click.argument("notebook", metavar="NOTEBOOK", type=click.Path(path_type=Path))
@click.option("--lab", required=True, metavar="LAB", help="The lab that the notebook answers.")
@json_option
@click.option(
    "--sandbox",
    type=click.Choice(["bubblewrap", "none"]),
    default="bubblewrap",
    show_default=True,
    help="`none` runs the notebook unprotected: only for notebooks that you wrote yourself.",
)
@click.option(
    "--student", metavar="ID", default="check", help="Whose inputs to use; they differ from student to student."
)
def check(course: Course, notebook: Path, lab: str, as_json: bool, sandbox: str, student: str) -> Exit:
    """Grade one notebook, recording nothing.

    NOTEBOOK may also be the folder of a submission. Leaves with 0 at full marks, 1 below, 2 if the notebook
    cannot be graded, 3 if this machine failed. The JSON is described by autograder/outcome.schema.json.
    """
    from autograder.classroom import fleet
    from autograder.cli import show

    outcome = fleet.check_notebook(course, lab, notebook, student=student, sandbox=sandbox)
    show.json_text(outcome.to_json()) if as_json else show.outcome(outcome)
    return outcome_status(outcome)


@command(
    "grade",
    examples=(
        "autograder grade lab02_formats",
        "autograder grade lab02_formats --student ada --student alan --force",
        "autograder grade lab02_formats --workers 8 --json",
        "autograder grade lab02_formats --scheduler tls://10.0.0.1:8786",
    ),
)
@lab_argument
@students_option
@workers_option
@scheduler_option
@click.option("--force", is_flag=True, help="Grade again what has not changed.")
@json_option
def grade(
    course: Course,
    lab: str,
    students: tuple[str, ...],
    workers: int | None,
    scheduler: str | None,
    force: bool,
    as_json: bool,
) -> Exit:
    """Grade a class: every submission to LAB.

    In parallel; the points go into the gradebook. Only what changed since the last run is graded: the
    submission, the lab, its checks, the reference. Each result is kept as it comes: an interrupted run
    loses nothing that was finished. Leaves with the gravest of: 0 full marks for all, 1 some below, 2 some
    not gradable, 3 some not graded through our fault. The JSON is a list; each element is described by
    autograder/outcome.schema.json.
    """
    _check_place(workers, scheduler)
    from autograder.classroom import fleet
    from autograder.cli import show

    where = fleet.Where(workers, scheduler)
    with show.Progress() as progress:
        run = fleet.grade_lab(course, lab, students, where=where, force=force, watch=progress)
    show.outcomes_json(run.outcomes) if as_json else show.class_run(run)
    return max((outcome_status(outcome) for outcome in run.outcomes), default=Exit.YES)


@command(
    "regrade",
    examples=("autograder regrade lab02_formats --compare", "autograder regrade lab02_formats"),
)
@lab_argument
@students_option
@workers_option
@scheduler_option
@click.option("--compare", is_flag=True, help="Leave the gradebook as it is; only say what would change.")
@json_option
def regrade(
    course: Course,
    lab: str,
    students: tuple[str, ...],
    workers: int | None,
    scheduler: str | None,
    compare: bool,
    as_json: bool,
) -> Exit:
    """Grade again and say whose points change.

    Every submission to LAB, changed or not; told are the students and the checks that did it. Leaves with 1
    if anybody's do.
    """
    _check_place(workers, scheduler)
    from autograder.classroom import fleet
    from autograder.cli import show

    where = fleet.Where(workers, scheduler)
    with show.Progress() as progress:
        changes = fleet.regrade_lab(course, lab, students, where=where, keep=not compare, watch=progress)
    show.regrade_json(changes) if as_json else show.regrade(changes, kept=not compare)
    return Exit.NO if changes else Exit.YES


def outcome_status(outcome: "Outcome") -> Exit:
    """Return what one outcome says to the shell."""
    if outcome.state == "graded":
        return Exit.YES if outcome.score >= outcome.max_score else Exit.NO
    return Exit.FAILURE if outcome.fault == "infrastructure" else Exit.NOT_GRADABLE


def _check_place(workers: int | None, scheduler: str | None) -> None:
    if scheduler is not None and workers:
        raise UsageError("--workers: expected it without --scheduler, got both; a scheduler has its own workers")
    if scheduler is not None and not scheduler.startswith("tls://"):
        raise UsageError(
            f"--scheduler: expected an address tls://HOST:PORT, got {scheduler!r}; "
            "without TLS anyone who reaches the port runs code as you"
        )
