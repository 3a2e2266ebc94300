"""What the commands print: tables on standard output, progress on standard error.

Ids, notes and messages come from students: they are shown as text, never as markup or as
control sequences of a terminal.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from autograder.authoring.build import Change as FileChange
    from autograder.classroom.collect import Collection
    from autograder.classroom.fleet import Change, ClassRun
    from autograder.classroom.plan import Plan
    from autograder.classroom.report import ClassReport
    from autograder.classroom.sample_class import Verified
    from autograder.doctor import Finding
    from autograder.outcome import CheckResult, Outcome

STYLES = {
    "passed": "green",
    "graded": "green",
    "failed": "red",
    "skipped": "yellow",
    "timed_out": "magenta",
    "crashed": "magenta",
    "out_of_memory": "magenta",
    "not_run": "yellow",
    "not_graded": "bold red",
}
LISTED_REASONS = 10
PIPED_WIDTH = 120


def line(text: str) -> None:
    """Print one line of plain text."""
    click.echo(plain(text))


def json_text(text: str) -> None:
    """Print a JSON document that is already text."""
    click.echo(text, nl=False)


def outcomes_json(outcomes: "Iterable[Outcome]") -> None:
    """Print a JSON list of outcomes."""
    click.echo(json.dumps([json.loads(outcome.to_json()) for outcome in outcomes], indent=1, ensure_ascii=False))


def findings(found: "Iterable[Finding]") -> None:
    """Print what the doctor found: a word, the finding, and a remedy where one is needed."""
    table = _table("", "", "")
    for finding in found:
        mark, style = (
            ("ok", "green") if finding.ok else ("missing", "bold red") if finding.needed else ("none", "yellow")
        )
        text = finding.text if finding.ok or not finding.remedy else f"{finding.text}\n→ {finding.remedy}"
        table.add_row(_text(mark, style), _text(finding.name), _text(text))
    _print(table)


def changes(found: "Sequence[FileChange]", *, check: bool) -> None:
    """Print which generated files were written, or differ from their source."""
    for change in found:
        line(f"{change.kind if check else 'wrote'} {change.path}")
    if not found:
        line("all generated files are what their sources give")


def outcome(found: "Outcome") -> None:
    """Print one outcome: a line for each check, the messages of those not passed, notes, points."""
    if found.state != "graded":
        line(f"not graded: {found.reason}")
        return
    table = _table("check", "status", "points")
    for check in found.checks:
        points = f"{check.points:g} / {check.max_points:g}"
        table.add_row(_text(check.id), _text(_words(check.status), STYLES[check.status]), points)
    _print(table)
    for check in found.checks:
        if check.status != "passed" and check.message:
            line(f"\n{check.message}")
    for label, texts in (("note", found.notes), ("suspicion", found.suspicions)):
        for text in texts:
            line(f"{label}: {text}")
    line(f"\n{found.score:g} of {found.max_score:g} points in {found.seconds:.0f} s")


def class_run(run: "ClassRun") -> None:
    """Print a class: points and what was remarkable of each, then why which were graded."""
    _print(_class_table(run))
    graded, unchanged = len(run.graded), len(run.outcomes) - len(run.graded)
    line(f"{graded} graded, {unchanged} unchanged since they were graded")
    for why, count in Counter(run.graded.values()).most_common():
        students = [student for student, reason in run.graded.items() if reason == why]
        named = ", ".join(students[:LISTED_REASONS]) + (", …" if count > LISTED_REASONS else "")
        line(f"  {why}: {named}")


def regrade(found: "Sequence[Change]", *, kept: bool) -> None:
    """Print whose points change and by which checks."""
    table = _table("student", "before", "after", "by")
    for change in found:
        by = [f"{id} {_words(old)} → {_words(new)} ({gained:+g})" for id, old, new, gained in change.checks]
        table.add_row(
            _text(change.student),
            _points(change.before),
            _points(change.after),
            _text("\n".join(by) or change.after.reason),
        )
    if found:
        _print(table)
    line(f"{len(found)} change; the gradebook {'has the new points' if kept else 'is as it was'}")


def regrade_json(found: "Iterable[Change]") -> None:
    """Print a JSON list of changes: student, points before and after, checks."""
    keys = ("check", "before", "after", "gained")
    document = [
        {
            "student": change.student,
            "before": change.before.score,
            "after": change.after.score,
            "checks": [dict(zip(keys, check, strict=True)) for check in change.checks],
        }
        for change in found
    ]
    click.echo(json.dumps(document, indent=1, ensure_ascii=False))


def collection(found: "Collection") -> None:
    """Print what was collected and what was refused."""
    line(f"collected {len(found.collected)} submissions")
    for name, reason in found.refused:
        line(f"refused {name}: {reason}")


def verified(found: "Iterable[Verified]") -> None:
    """Print what a made-up class should get beside what it got."""
    table = _table("student", "expected", "got", "")
    for row in found:
        table.add_row(
            _text(row.id), row.expected, row.got, _text("", "") if row.is_right else _text("differs", "bold red")
        )
    _print(table)


def report(found: "ClassReport") -> None:
    """Print the class and what it misunderstood."""
    table = _table("student", "points", "state", "remarks")
    for row in found.rows:
        table.add_row(_text(row.student), _text(row.points_text), _text(row.state), _text("\n".join(row.remarks)))
    _print(table)
    checks = _table("check", "passed", "the misconception: the answer …")
    for item in found.misunderstood:
        checks.add_row(_text(item.id), f"{item.passed} / {item.graded}", _text(item.catches))
    if found.misunderstood:
        _print(checks)
    line(f"{len(found.checks) - len(found.misunderstood)} of {len(found.checks)} checks show no misconception")


class Progress:
    """A progress bar with counts by status and the time left, on standard error."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._counts: Counter[str] = Counter()
        self._bar = Bar(
            TextColumn("grading"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[counts]}", markup=False),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("grading", total=None, counts="")

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar.live.is_started:
            self._bar.stop()

    def planned(self, plan: "Plan") -> None:
        """Show the bar, as long as the plan; none where there is nothing to do."""
        if total := len(plan.tasks) + len(plan.unreadable):
            self._bar.update(self._task, total=total)
            self._bar.start()

    def finished(self, outcome: "Outcome") -> None:
        """Count one outcome."""
        self._counts[_summary(outcome)] += 1
        counts = " · ".join(f"{count} {word}" for word, count in self._counts.most_common())
        self._bar.update(self._task, advance=1, counts=counts)


def plain(text: str) -> str:
    """Return the text without what steers a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _class_table(run: "ClassRun") -> "Table":
    table = _table("student", "points", "state", "remarks")
    for found in run.outcomes:
        remarks = [found.reason] if found.reason else _stumbles(found.checks)
        remarks += [f"suspicion: {text}" for text in found.suspicions]
        table.add_row(
            _text(found.student),
            _points(found),
            _text(_words(found.state), STYLES[found.state]),
            _text("\n".join(remarks)),
        )
    return table


def _stumbles(checks: "Sequence[CheckResult]") -> list[str]:
    """Return one remark that counts the checks not passed, by status."""
    counts = Counter(_words(check.status) for check in checks if check.status != "passed")
    return [", ".join(f"{count} {word}" for word, count in counts.most_common())] if counts else []


def _summary(outcome: "Outcome") -> str:
    if outcome.state != "graded":
        return "not graded"
    return "full marks" if outcome.score >= outcome.max_score else "below"


def _points(outcome: "Outcome") -> str:
    return f"{outcome.score:g} / {outcome.max_score:g}" if outcome.state == "graded" else "–"


def _words(status: str) -> str:
    return status.replace("_", " ")


def _text(text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(plain(text), style=style)


def _table(*columns: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_header=any(columns), pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column in ("points", "passed") else "left")
    return table


def _print(table: "Table") -> None:
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else PIPED_WIDTH).print(table)
