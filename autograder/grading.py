"""Grade one submission: bytes in, values out. No gradebook, no folder, no state.

This is what `autograder check`, every worker of a class and nbgrader's own command call.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.checks import Check, derive_seed
from autograder.errors import AutograderError, CourseError, SandboxError, SubmissionError
from autograder.inert import inert_attachments, inert_markdown, inert_outputs, inert_text
from autograder.intake import Intake, Submission, take_in
from autograder.intake_match import grade_id, is_check, is_locked
from autograder.judge import Judgement, judge
from autograder.lab import Lab
from autograder.outcome import CheckResult, Outcome

ATTEMPTS = 3
"""How often a submission is tried when the machine fails: once, and twice more."""
NOTES_ID = "autograder-notes"
LOG = logging.getLogger(__name__)


@dataclass
class Graded:
    """The outcome of one submission, and the judged notebook where there is one."""

    outcome: Outcome
    notebook: NotebookNode | None = None


def grade(
    submission: Submission | Mapping[str, bytes],
    lab: Lab,
    student: str,
    secret: bytes | Mapping[str, bytes],
    prefix: Path,
    *,
    sandbox: str = "bubblewrap",
) -> Graded:
    """Return the verdict on one submission, or the reason why there is none.

    Parameters
    ----------
    submission: what `read_folder` read, or files by path.
    secret: the course's secret, or the seeds that `seeds_for` derived from it: a worker on
        another machine never gets the secret itself.
    prefix: the Python environment that the sandbox shows.

    Raises
    ------
    CourseError
        If the lab itself is wrong: then no submission can be blamed.
    """
    begun = time.monotonic()
    taken = submission if isinstance(submission, Submission) else Submission.of(submission)
    require_a_check_for_every_cell(lab)
    seeds = seeds_for(secret, lab, student, taken.digest) if isinstance(secret, bytes) else secret
    graded = _grade(taken, lab, student, seeds, prefix, sandbox)
    graded.outcome.seconds = round(time.monotonic() - begun, 3)
    return graded


def seeds_for(secret: bytes, lab: Lab, student: str, digest: str) -> dict[str, bytes]:
    """Return the seed of each check for one submission."""
    return {check.id: derive_seed(secret, lab.name, check, student, digest) for check in lab.checks}


def not_graded(lab: Lab, student: str, digest: str, reason: str, fault: str) -> Outcome:
    """Return an outcome without a verdict: never a zero."""
    return Outcome(
        student=student,
        lab=lab.name,
        hash=digest,
        lab_version=lab.version,
        state="not_graded",
        reason=inert_text(reason, 2000),
        fault=fault,
        graded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=dict(lab.versions),
    )


def require_a_check_for_every_cell(lab: Lab) -> None:
    """Fail closed: a graded cell that nothing judges would be full marks or none for everyone.

    Raises
    ------
    CourseError
        If graded cells and checks are not the same, or their points differ.
    """
    cells = {grade_id(cell): float(cell.metadata.nbgrader.points) for cell in lab.released.cells if is_check(cell)}
    checks = {check.id: float(check.points) for check in lab.checks}
    if cells != checks:
        differing = sorted(set(cells.items()) ^ set(checks.items()))
        raise CourseError(
            f"{lab.name}: expected one check for each graded cell with the same points, "
            f"got {', '.join(f'{name} ({points:g})' for name, points in differing)}; run: autograder build {lab.name}"
        )


def _grade(
    submission: Submission, lab: Lab, student: str, seeds: Mapping[str, bytes], prefix: Path, sandbox: str
) -> Graded:
    outcome = not_graded(lab, student, submission.digest, "", "")
    try:
        intake = take_in(submission, lab.released, lab.name)
        judgement = _judge(intake, lab, seeds, prefix, sandbox)
    except SubmissionError as problem:
        outcome.reason, outcome.fault = inert_text(problem, 2000), "submission"
        return Graded(outcome)
    except SandboxError as problem:
        outcome.reason, outcome.fault = inert_text(problem, 2000), "infrastructure"
        return Graded(outcome)
    except AutograderError:
        raise
    except Exception as error:  # whatever a submission provokes in our code costs that submission alone
        LOG.exception("%s, %s: grading failed", lab.name, student)
        outcome.reason = inert_text(f"the grader failed: {type(error).__name__}: {error}", 2000)
        outcome.fault = "infrastructure"
        return Graded(outcome)
    outcome.state, outcome.checks = "graded", _complete(judgement, lab)
    outcome.notes = [inert_text(note, 500) for note in (*intake.notes, *judgement.notes)]
    outcome.suspicions = [inert_text(suspicion, 500) for suspicion in judgement.suspicions]
    return Graded(outcome, _judged_notebook(intake, judgement, outcome))


def _judge(intake: Intake, lab: Lab, seeds: Mapping[str, bytes], prefix: Path, sandbox: str) -> Judgement:
    """Return the judgement; a machine that fails is asked again."""

    def seed(check: Check) -> bytes:
        return seeds[check.id]

    for attempt in range(1, ATTEMPTS + 1):
        try:
            return judge(intake.notebook, lab, intake.files, seed, prefix=prefix, sandbox=sandbox)
        except SandboxError as failure:
            LOG.warning("%s: attempt %d of %d failed: %s", lab.name, attempt, ATTEMPTS, failure)
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _complete(judgement: Judgement, lab: Lab) -> list[CheckResult]:
    """Return the results in the lab's order; a check without one is our fault, not a zero."""
    results = {result.id: result for result in judgement.results}
    if missing := [check.id for check in lab.checks if check.id not in results]:
        raise CourseError(f"{lab.name}: expected a verdict on every check, got none on {', '.join(missing)}")
    return [results[check.id] for check in lab.checks]


def _judged_notebook(intake: Intake, judgement: Judgement, outcome: Outcome) -> NotebookNode:
    """Return the notebook as teacher and student will read it: inert, with the verdicts in the check cells."""
    notebook = nbformat.from_dict(intake.notebook)
    results = {result.id: result for result in outcome.checks}
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            cell.outputs = inert_outputs(judgement.outputs.get(index, []))
            cell.execution_count = None
        elif not is_locked(cell):
            cell.source = inert_markdown(cell.source)
        if "attachments" in cell:
            cell.attachments = inert_attachments(cell.attachments)
        if is_check(cell):
            text = verdict_text(results[grade_id(cell)])
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    if outcome.notes:
        notebook.cells.insert(0, _notes_cell(outcome.notes))
    return notebook


def verdict_text(result: CheckResult) -> str:
    """Return the lines that stand under a check: the verdict, the points, then the message.

    >>> print(verdict_text(CheckResult("encode_e2m1-ties", 0, 2, "timed_out", "the call took over 10 s")), end="")
    encode_e2m1-ties: timed out, 0 of 2 points
    the call took over 10 s
    """
    status = result.status.replace("_", " ")
    headline = f"{result.id}: {status}, {result.points:g} of {result.max_points:g} points"
    return "\n".join([headline, *([inert_text(result.message)] if result.message else [])]) + "\n"


def _notes_cell(notes: list[str]) -> NotebookNode:
    lines = "\n".join(f"- {inert_markdown(note)}" for note in notes)
    return nbformat.v4.new_markdown_cell(f"**Notes of the autograder**\n\n{lines}", id=NOTES_ID)
