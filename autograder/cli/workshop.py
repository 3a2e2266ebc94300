"""Commands of an author: build and release labs, start a new one, publish what students may have."""

from pathlib import Path

import click

from autograder.cli.command import Exit, command, known_lab, lab_argument
from autograder.course import Course


@command(
    "build",
    examples=("autograder build", "autograder build lab02_formats", "autograder build --check"),
)
@click.argument("labs", metavar="[LAB ...]", nargs=-1)
@click.option("--check", is_flag=True, help="Write nothing; leave with 1 if a generated file differs from its source.")
def build(course: Course, labs: tuple[str, ...], check: bool) -> Exit:
    """Make labs/ and solutions/ from their sources.

    The lab sources and the reference are the only places that are edited. Without LAB all labs are
    built. The same sources give the same bytes.
    """
    from autograder.authoring.build import build as build_labs
    from autograder.cli import show

    changes = build_labs(course, [known_lab(course, lab) for lab in labs], check=check)
    show.changes(changes, check=check)
    return Exit.NO if check and changes else Exit.YES


@command("release", examples=("autograder release lab02_formats",))
@lab_argument
def release(course: Course, lab: str) -> None:
    """Make the assignment that students get.

    Builds course/source, lets nbgrader make course/release from it, and enters the lab into the gradebook.
    """
    from autograder.authoring.release import release as release_lab
    from autograder.cli import show

    release_lab(course, lab)
    show.line(f"released {lab}: {course.release / lab}")


@command("new-lab", examples=("autograder new-lab lab08_paging",))
@click.argument("name", metavar="NAME")
def new_lab(course: Course, name: str) -> None:
    """Start a lab: source, checks, planted answers.

    NAME is labNN_noun. The files hold one worked example each, and build and grade as they are written.
    """
    from autograder.authoring.new_lab import new_lab as write_lab
    from autograder.cli import show

    for path in write_lab(course, name):
        show.line(f"wrote {path}")


@command("publish", examples=("autograder publish ../public",))
@click.argument("target", metavar="DIR", type=click.Path(path_type=Path))
def publish(course: Course, target: Path) -> None:
    """Write what students may have to DIR.

    The built book, the labs and the environment, and nothing else. DIR must be new, empty, or written by an
    earlier publish.
    """
    from autograder.authoring.publish import publish as write_public
    from autograder.cli import show

    written = write_public(course, target)
    show.line(f"published {len(written)} files to {target}")
