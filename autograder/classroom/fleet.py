"""A class in parallel: tasks go out as bytes, each result is recorded as it comes.

The coordinator alone knows the secret and the gradebook. Workers get one submission at a time,
judge it in a sandbox and send the outcome back. A broken submission costs only itself; a worker
that dies is replaced and its submission tried again; an interrupt loses nothing that was recorded.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from autograder.classroom import cluster
from autograder.classroom.cluster import Where
from autograder.classroom.payload import Payload
from autograder.classroom.plan import Plan, Task, make_plan, read_outcome
from autograder.course import Course
from autograder.gradebook import recording as gradebook
from autograder.grading import Graded, grade, seeds_from
from autograder.intake import read_folder, read_notebook
from autograder.judging.environments import environment_for
from autograder.lab import Lab, load_lab
from autograder.outcome import Outcome

__all__ = ["Change", "ClassRun", "Watch", "Where", "check_notebook", "grade_lab", "regrade_lab"]


class Watch(Protocol):
    """Somebody who looks on: a progress bar, a test."""

    def planned(self, plan: Plan) -> None:
        """Told once, before the first submission is graded."""

    def finished(self, outcome: Outcome) -> None:
        """Told after each submission, when its outcome is recorded."""


class Silent:
    """Looks away."""

    def planned(self, plan: Plan) -> None:
        """Say nothing."""

    def finished(self, outcome: Outcome) -> None:
        """Say nothing."""


@dataclass
class ClassRun:
    """What one run did: all outcomes by student, and why those graded now were graded."""

    lab: str
    outcomes: list[Outcome] = field(default_factory=list)
    graded: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """A student whose points another grading changed, and the checks that did it."""

    student: str
    before: Outcome
    after: Outcome

    @property
    def checks(self) -> list[tuple[str, str, str, float]]:
        """Return (check, status before, status after, points gained) where the points differ."""
        old = {check.id: check for check in self.before.checks}
        new = {check.id: check for check in self.after.checks}
        found = []
        for id in dict.fromkeys([*old, *new]):
            gained = (new[id].points if id in new else 0.0) - (old[id].points if id in old else 0.0)
            if gained:
                found.append((id, old[id].status if id in old else "-", new[id].status if id in new else "-", gained))
        return found


def grade_lab(
    course: Course,
    name: str,
    students: Collection[str] = (),
    *,
    where: Where | None = None,
    force: bool = False,
    watch: Watch | None = None,
) -> ClassRun:
    """Grade what changed of a class, record each result as it comes, return all outcomes.

    Raises
    ------
    UsageError
        If nothing was handed in, or a named student handed in nothing.
    CourseError
        If the lab is broken, or a worker has another version of it.
    """
    lab, watch = load_lab(course, name), watch or Silent()
    plan = make_plan(course, lab, students, force=force)
    run = ClassRun(name, list(plan.unchanged), {task.student: task.why for task in plan.tasks})
    watch.planned(plan)
    for graded in _results(course, lab, plan, where or Where()):
        outcome = gradebook.record(course, graded)
        run.outcomes.append(outcome)
        watch.finished(outcome)
    run.outcomes.sort(key=lambda outcome: outcome.student)
    return run


def regrade_lab(
    course: Course,
    name: str,
    students: Collection[str] = (),
    *,
    where: Where | None = None,
    keep: bool = False,
    watch: Watch | None = None,
) -> list[Change]:
    """Grade a class again, changed or not; return whose points change. `keep` records the results."""
    lab, watch = load_lab(course, name), watch or Silent()
    plan = make_plan(course, lab, students, force=True)
    watch.planned(plan)
    changes = []
    for graded in _results(course, lab, plan, where or Where()):
        before = read_outcome(course, name, graded.outcome.student)
        after = gradebook.record(course, graded) if keep else graded.outcome
        watch.finished(after)
        if before and (before.state, before.score) != (after.state, after.score):
            changes.append(Change(after.student, before, after))
    return sorted(changes, key=lambda change: change.student)


def check_notebook(
    course: Course, name: str, path: Path, *, student: str = "check", sandbox: str = "bubblewrap"
) -> Outcome:
    """Grade one notebook, or the folder of a submission, here and now; nothing is recorded."""
    lab = load_lab(course, name)
    submission = read_folder(path) if path.is_dir() else read_notebook(path)
    prefix = environment_for(course, lab.header.packages, lab.name)
    return grade(submission, lab, student, course.secret(), prefix, sandbox=sandbox).outcome


def _results(course: Course, lab: Lab, plan: Plan, where: Where) -> Iterator[Graded]:
    for outcome in plan.unreadable:
        yield Graded(outcome, None)
    if plan.tasks:
        environment_for(course, lab.header.packages, lab.name)  # once here, not by every worker at the same time
        yield from cluster.run(lab, {task.student: _payload(course, lab, task) for task in plan.tasks}, where)


def _payload(course: Course, lab: Lab, task: Task) -> Payload:
    seed = seeds_from(course.secret(), lab, task.student, task.submission.digest)
    seeds = {check.id: seed(check).hex() for check in lab.checks}
    return Payload(str(course.root), lab.name, lab.version, task.student, seeds, task.submission)
