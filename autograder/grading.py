"""Grade one submission: bytes in, values out. No gradebook, no folder, no state.

This is what `autograder check`, every worker of a class and nbgrader's own command call.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.checks import Check, derive_seed
from autograder.display.inert import fenced, inert_attachments, inert_markdown, inert_outputs, inert_text
from autograder.errors import AutograderError, CourseError, SandboxError, SubmissionError
from autograder.intake import Intake, Submission, take_in
from autograder.intake.match import grade_id, is_check, is_locked
from autograder.judging.judge import Judgement, judge
from autograder.judging.verdict import whole_seconds
from autograder.lab import Lab
from autograder.outcome import CheckResult, Outcome

ATTEMPTS = 3
"""How often a submission is tried when the machine fails: once, and twice more."""
NOTES_ID = "autograder-notes"
LOG = logging.getLogger(__name__)
Seeds = Callable[[Check], bytes]


@dataclass
class Graded:
    """The outcome of one submission, and the judged notebook where there is one."""

    outcome: Outcome
    notebook: NotebookNode | None = None


def grade(
    submission: Submission | Mapping[str, bytes],
    lab: Lab,
    student: str,
    seeds: bytes | Seeds,
    prefix: Path,
    *,
    sandbox: str = "bubblewrap",
) -> Graded:
    """Return the verdict on one submission, or the reason why there is none.

    Parameters
    ----------
    submission: what `read_folder` read, or files by path.
    seeds: the course's secret, or what gives each check its seed: a worker on another machine
        gets seeds that were derived for this submission, never the secret itself.
    prefix: the Python environment that the sandbox shows.

    Raises
    ------
    CourseError
        If the lab itself is wrong: then no submission can be blamed.
    """
    begun = time.monotonic()
    taken = submission if isinstance(submission, Submission) else Submission.of(submission)
    require_a_check_for_every_cell(lab)
    give = seeds_from(seeds, lab, student, taken.digest) if isinstance(seeds, bytes) else seeds
    graded = _grade(taken, lab, student, give, prefix, sandbox)
    graded.outcome.seconds = whole_seconds(time.monotonic() - begun)
    return graded


def seeds_from(secret: bytes, lab: Lab, student: str, digest: str) -> Seeds:
    """Return what gives each check its seed for one submission."""
    return lambda check: derive_seed(secret, lab.name, check, student, digest)


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


def _grade(submission: Submission, lab: Lab, student: str, seeds: Seeds, prefix: Path, sandbox: str) -> Graded:
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


def _judge(intake: Intake, lab: Lab, seeds: Seeds, prefix: Path, sandbox: str, attempt: int = 1) -> Judgement:
    """Return the judgement; a machine that fails is asked again."""
    try:
        return judge(intake.notebook, lab, intake.files, seeds, prefix=prefix, sandbox=sandbox)
    except SandboxError as failure:
        LOG.warning("%s: attempt %d of %d failed: %s", lab.name, attempt, ATTEMPTS, failure)
        if attempt == ATTEMPTS:
            raise
    return _judge(intake, lab, seeds, prefix, sandbox, attempt + 1)


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
    notebook.cells = [
        _judged_cell(cell, judgement.outputs.get(index, []), results) for index, cell in enumerate(notebook.cells)
    ]
    if outcome.notes:
        notebook.cells.insert(0, _notes_cell(outcome.notes))
    return notebook


def _judged_cell(cell: NotebookNode, outputs: list[dict[str, Any]], results: dict[str, CheckResult]) -> NotebookNode:
    if is_check(cell):
        verdict = nbformat.v4.new_output("stream", name="stdout", text=verdict_text(results[grade_id(cell)]))
        return nbformat.from_dict({**cell, "outputs": [verdict], "execution_count": None})
    if cell.cell_type == "code":
        return nbformat.from_dict({**cell, "outputs": inert_outputs(outputs), "execution_count": None})
    if is_locked(cell):
        return cell
    shown = nbformat.v4.new_markdown_cell(inert_markdown(cell.source), id=cell.id, metadata=cell.metadata)
    if cell.cell_type == "raw":  # pages print raw cells as they are, tags and all
        shown.source = fenced(cell.source)
    if pictures := inert_attachments(cell.get("attachments", {})):
        shown["attachments"] = pictures
    return shown


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
