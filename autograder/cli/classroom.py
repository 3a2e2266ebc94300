"""Commands around a class: who is in it, and what they handed in."""

from pathlib import Path

import click

from autograder.cli.command import Exit, command, lab_argument
from autograder.course import Course


@command("roster", examples=("autograder roster students.csv",))
@click.argument("csv_file", metavar="CSV", type=click.Path(path_type=Path))
def roster(course: Course, csv_file: Path) -> None:
    """Enter the students of a CSV file.

    They go into the gradebook. Columns by name, in any order: id (needed), first_name, last_name, email,
    lms_user_id; the names that Canvas and Moodle give these columns are understood too. A file with a wrong
    line changes nothing; every wrong line is named.
    """
    from autograder.classroom import roster as rosters
    from autograder.cli import show

    added, changed = rosters.enter(course, rosters.read(csv_file))
    show.line(f"roster: {len(added)} added, {len(changed)} changed")


@command(
    "collect",
    examples=(
        "autograder collect lab02_formats submissions.zip --due 2027-03-01T12:00",
        "autograder collect lab02_formats",
    ),
)
@lab_argument
@click.argument("zip_file", metavar="[ZIP]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--due",
    metavar="TIME",
    help="When it was due, as 2027-03-01T12:00 (UTC unless it names a zone); kept for late penalties.",
)
def collect(course: Course, lab: str, zip_file: Path | None, due: str | None) -> Exit:
    """Bring submissions into the course.

    From a ZIP as Canvas and Moodle make it, else from nbgrader's exchange, into course/submitted. The
    latest attempt of each student is kept. Files that cannot be given to a student are listed, and the
    command leaves with 1.
    """
    from autograder.classroom import collect as collecting
    from autograder.classroom import lms_zip
    from autograder.cli import show

    if due:
        collecting.set_due(course, lab, due)
    found = lms_zip.from_zip(course, lab, zip_file) if zip_file else collecting.from_exchange(course, lab)
    show.collection(found)
    return Exit.NO if found.refused else Exit.YES


@command(
    "sample-class", examples=("autograder sample-class lab02_formats", "autograder sample-class lab02_formats --verify")
)
@lab_argument
@click.option("--verify", is_flag=True, help="Write nothing; compare the grades with the expected ones.")
def sample_class(course: Course, lab: str, verify: bool) -> Exit:
    """Write a made-up class whose scores are known.

    Untouched, perfect, six with one planted misconception each, a crash, an endless loop, a memory
    hog, a cheat, a torn file. With --verify, after `autograder grade`: who did not get what was expected.
    """
    from autograder.classroom import sample_class as samples
    from autograder.cli import show

    if not verify:
        for student in samples.write(course, lab):
            show.line(f"{student.id}: expected {student.expected_text}")
        return Exit.YES
    found = samples.verify(course, lab)
    show.verified(found)
    return Exit.YES if all(row.is_right for row in found) else Exit.NO
