"""What all commands share: examples in `--help`, the course, exit statuses, wrong usage is 64."""

import functools
import shlex
from collections.abc import Callable
from difflib import get_close_matches
from enum import IntEnum
from pathlib import Path
from typing import Any

import click

from autograder.course import Course
from autograder.errors import UsageError


class Exit(IntEnum):
    """What a command says to the shell; the greater of two wins where both apply."""

    YES = 0
    NO = 1
    NOT_GRADABLE = 2
    FAILURE = 3
    USAGE = 64
    INTERRUPTED = 130


class Command(click.Command):
    """A command whose help ends with examples; a test parses each of them."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each on a line of its own."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{' ' * formatter.current_indent}{example}\n")
        super().format_epilog(ctx, formatter)

    def parse_example(self, example: str) -> click.Context:
        """Return the context that an example gives; raises ClickException if it is no valid call."""
        program, name, *arguments = shlex.split(example)
        if (program, name) != ("autograder", self.name):
            raise click.UsageError(f"example: expected `autograder {self.name} …`, got {example!r}")
        return self.make_context(name, arguments)


class Group(click.Group):
    """Lists its commands in the order of a term, not of the alphabet."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were added."""
        return list(self.commands)


def command(name: str, *, examples: tuple[str, ...]) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function that takes the `course` first; `--course DIR` finds it.

    A parameter called `lab` must name a lab of the course.
    """
    option = click.option(
        "--course",
        "directory",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="The course's folder. Default: AUTOGRADER_COURSE, then the nearest one above.",
    )

    def decorate(function: Callable[..., Any]) -> Command:
        @functools.wraps(function)
        def with_course(directory: Path | None, **arguments: Any) -> Any:
            course = Course.find(directory)
            if "lab" in arguments:
                known_lab(course, arguments["lab"])
            return function(course, **arguments)

        made: Command = click.command(name, cls=Command, examples=examples)(option(with_course))
        return made

    return decorate


lab_argument = click.argument("lab", metavar="LAB")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output, nothing else.")
students_option = click.option(
    "--student", "students", metavar="ID", multiple=True, help="Only this student; may be repeated."
)
workers_option = click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Processes on this machine. Default: its cores."
)
scheduler_option = click.option(
    "--scheduler", metavar="ADDRESS", help="A running Dask scheduler, tls://HOST:PORT, instead of this machine."
)


def known_lab(course: Course, name: str) -> str:
    """Return the name of a lab of the course's project.

    Raises
    ------
    UsageError
        If there is none of that name; the message proposes near ones.
    """
    known = course.lab_names()
    if name in known:
        return name
    near = get_close_matches(name, known, n=1, cutoff=0.4)
    advice = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none yet'}"
    raise UsageError(f"lab: expected a lab of {course.solutions}, got {name!r}; {advice}")
