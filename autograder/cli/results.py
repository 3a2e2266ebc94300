"""Commands after grading: feedback to students, a report to the instructor, marks to the LMS."""

from pathlib import Path

import click

from autograder.cli.command import command, lab_argument, students_option
from autograder.course import Course


@command("feedback", examples=("autograder feedback lab02_formats",))
@lab_argument
@students_option
def feedback(course: Course, lab: str, students: tuple[str, ...]) -> None:
    """Write one page of feedback for each student.

    It shows their notebook, the verdicts, the points and your comments. The pages load nothing from other
    hosts, and what a student wrote is inert in them.
    """
    from autograder.cli import show
    from autograder.gradebook.feedback import write_feedback

    pages = write_feedback(course, lab, students)
    show.line(f"feedback: {len(pages)} page{'' if len(pages) == 1 else 's'} under {course.feedback}")


@command("report", examples=("autograder report lab02_formats",))
@lab_argument
def report(course: Course, lab: str) -> None:
    """Show the class and what it misunderstood.

    Who got what, who was not graded and why, which check how many passed. Prints a table and writes a page,
    course/.autograder/reports/LAB.html, that needs no other host.
    """
    from autograder.classroom import report as reports
    from autograder.cli import show

    found = reports.gather(course, lab)
    page = reports.write(course, found)
    show.report(found)
    show.line(f"report: {page}")


@command(
    "export",
    examples=(
        "autograder export lab02_formats --format csv",
        "autograder export lab02_formats --format canvas --title 'Lab 2 (4711)' --to canvas.csv",
        "autograder export lab02_formats --format moodle --to -",
    ),
)
@lab_argument
@click.option("--format", "form", type=click.Choice(["csv", "canvas", "moodle"]), default="csv", show_default=True)
@click.option("--title", metavar="TEXT", help="The column's title in the LMS. Default: the lab's name.")
@click.option(
    "--to",
    type=click.Path(path_type=Path, allow_dash=True),
    help="The file; - is standard output. Default: below course/.autograder/exports.",
)
def export(course: Course, lab: str, form: str, title: str | None, to: Path | None) -> None:
    """Write the points as a CSV file for the LMS.

    Late penalties are taken off. Who handed in nothing, or waits for a manual mark, stays blank:
    an LMS keeps what it has there.
    """
    from autograder.classroom import export as exporting
    from autograder.cli import show

    text = exporting.EXPORTS[form](exporting.gather(course, lab), title or lab)
    target = to or course.private / "exports" / f"{lab}-{form}.csv"
    if str(target) == "-":
        click.echo(text, nl=False)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="")
    show.line(f"exported {lab}: {target}")
