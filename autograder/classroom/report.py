"""What an instructor wants to know of a class: who got what, who was not graded, what was misunderstood.

`gather` reads outcomes and gradebook into plain values; `write` makes a page of them that loads
nothing from anywhere. Every text of a student is escaped.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from autograder.classroom.export import gather as gather_marks
from autograder.classroom.histogram import Histogram, histogram
from autograder.classroom.plan import INFRASTRUCTURE, read_outcomes
from autograder.course import Course
from autograder.errors import UsageError
from autograder.gradebook.marks import Mark, points_text
from autograder.lab import Lab, load_lab
from autograder.outcome import STATUSES, Outcome

TEMPLATES = Path(__file__).resolve().parents[1] / "templates"


@dataclass(frozen=True)
class StudentRow:
    """One student: the marks of the gradebook beside the outcome of the judge."""

    mark: Mark
    outcome: Outcome
    is_stale: bool

    @property
    def student(self) -> str:
        """The id in the gradebook."""
        return self.outcome.student

    @property
    def name(self) -> str:
        """The person's name, as far as the gradebook has it."""
        return f"{self.mark.first_name} {self.mark.last_name}".strip()

    @property
    def state(self) -> str:
        """Graded, not graded, or what a person has still to do."""
        if self.outcome.state != "graded":
            return "not graded"
        return "to be marked" if self.mark.needs_marking else "graded"

    @property
    def total(self) -> float | None:
        """The points that count so far; None where nothing was graded."""
        return self.mark.total

    @property
    def points_text(self) -> str:
        """The points and the maximum, as a person writes them."""
        return "–" if self.total is None else f"{points_text(self.total)} / {points_text(self.mark.max_score)}"

    @property
    def remarks(self) -> list[str]:
        """Everything that an instructor should read about this submission."""
        found = [self.outcome.reason] if self.outcome.reason else []
        if self.mark.late_penalty:
            found.append(f"late: {self.mark.late_penalty:g} points taken off")
        if self.is_stale:
            found.append("graded by other checks than today's: run autograder grade")
        return [*found, *self.outcome.notes, *(f"suspicion: {text}" for text in self.outcome.suspicions)]


@dataclass(frozen=True)
class CheckRow:
    """One check over the class: how many passed, and who got wrong what it catches.

    `losers` passed at least one other check: who attempted nothing has misunderstood nothing.
    """

    id: str
    title: str
    catches: str
    points: float
    statuses: Counter[str]
    losers: list[str]

    @property
    def graded(self) -> int:
        """How many submissions this check judged."""
        return sum(self.statuses.values())

    @property
    def passed(self) -> int:
        """How many passed it."""
        return self.statuses["passed"]

    @property
    def percent(self) -> float:
        """The share that passed, in percent."""
        return 100 * self.passed / self.graded if self.graded else 0.0

    @property
    def others(self) -> list[tuple[str, int]]:
        """The statuses other than passed, with their counts."""
        return [(status.replace("_", " "), self.statuses[status]) for status in STATUSES[1:] if self.statuses[status]]


@dataclass(frozen=True)
class ClassReport:
    """One lab and one class."""

    lab: str
    title: str
    rows: list[StudentRow]
    checks: list[CheckRow]
    missing: list[Mark]
    max_score: float
    histogram: Histogram
    made_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def totals(self) -> list[float]:
        """The points of everyone who has any."""
        return [row.total for row in self.rows if row.total is not None]

    @property
    def mean(self) -> float:
        """The mean of the points; 0 in an empty class."""
        return mean(self.totals) if self.totals else 0.0

    @property
    def median(self) -> float:
        """The median of the points; 0 in an empty class."""
        return median(self.totals) if self.totals else 0.0

    @property
    def not_graded(self) -> list[StudentRow]:
        """Who has no verdict."""
        return [row for row in self.rows if row.outcome.state != "graded"]

    @property
    def n_idle(self) -> int:
        """How many submissions passed no check at all."""
        return sum(row.outcome.state == "graded" and not row.outcome.score for row in self.rows)

    @property
    def suspicious(self) -> list[StudentRow]:
        """Whose work a person should look at."""
        return [row for row in self.rows if row.outcome.suspicions]

    @property
    def misunderstood(self) -> list[CheckRow]:
        """The checks that somebody lost, the most lost first."""
        return sorted((check for check in self.checks if check.losers), key=lambda check: check.percent)


def gather(course: Course, name: str) -> ClassReport:
    """Return what is known of a class.

    Raises
    ------
    UsageError
        If nothing was graded yet.
    """
    lab, outcomes = load_lab(course, name), read_outcomes(course, name)
    if not outcomes:
        raise UsageError(f"{name}: expected graded submissions, found none; run: autograder grade {name}")
    marks = {mark.student: mark for mark in gather_marks(course, name)}
    rows = [_student_row(lab, outcome, marks) for outcome in outcomes]
    seen = {row.student for row in rows}
    max_score = max((row.mark.max_score for row in rows), default=0.0)
    totals = [row.total for row in rows if row.total is not None]
    return ClassReport(
        lab=name,
        title=lab.header.title,
        rows=rows,
        checks=[_check_row(check.id, lab, outcomes) for check in lab.checks],
        missing=[mark for student, mark in marks.items() if student not in seen],
        max_score=max_score,
        histogram=histogram(totals, max_score),
    )


def write(course: Course, report: ClassReport) -> Path:
    """Write the page of a report; return its path."""
    path = course.private / "reports" / f"{report.lab}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(report), encoding="utf-8")
    return path


def page(report: ClassReport) -> str:
    """Return a report as one page that needs no other file and no other host."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["points"] = points_text
    template = environment.get_template("report.html")
    return template.render(report=report, infrastructure=INFRASTRUCTURE)


def _student_row(lab: Lab, outcome: Outcome, marks: dict[str, Mark]) -> StudentRow:
    mark = marks.get(outcome.student) or Mark(outcome.student)
    return StudentRow(mark, outcome, is_stale=outcome.lab_version != lab.version)


def _check_row(id: str, lab: Lab, outcomes: Sequence[Outcome]) -> CheckRow:
    check = lab.checks[id]
    results = [(outcome, result) for outcome in outcomes for result in outcome.checks if result.id == id]
    return CheckRow(
        id=id,
        title=check.title,
        catches=check.catches,
        points=check.points,
        statuses=Counter(result.status for _, result in results),
        losers=[outcome.student for outcome, result in results if result.status != "passed" and outcome.score],
    )
