"""The command line: `autograder COMMAND …`, one way out, one meaning for each exit status.

0 yes · 1 no (differs, below full marks) · 2 not gradable · 3 our failure · 64 wrong usage · 130 interrupted
"""

import sys
import traceback
from collections.abc import Sequence

import click

from autograder.classroom import quickstart  # noqa: F401  (imported for its effect)
from autograder.cli import classroom, machine, marking, results, workshop
from autograder.cli.command import Exit, Group
from autograder.errors import AutograderError

COMMANDS = (
    machine.doctor,
    workshop.build,
    marking.check,
    workshop.release,
    classroom.collect,
    classroom.roster,
    marking.grade,
    marking.regrade,
    results.feedback,
    results.report,
    results.export,
    workshop.new_lab,
    workshop.publish,
    classroom.sample_class,
)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="fp4kv-course", prog_name="autograder")
def autograder() -> None:
    """Build labs, grade a class, and tell what the class misunderstood.

    Student code runs in a sandbox without network; the judge outside it decides. A course is found
    by --course, then AUTOGRADER_COURSE, then the nearest folder above that has one.

    Exit status: 0 yes, 1 no (differs, below full marks), 2 not gradable, 3 our failure,
    64 wrong usage, 130 interrupted.
    """


for entry in COMMANDS:
    autograder.add_command(entry)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and leave the process with its exit status."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return its exit status, every error told once on standard error."""
    try:
        status = autograder.main(args=arguments, prog_name="autograder", standalone_mode=False)
    except AutograderError as error:
        click.echo(f"autograder: {error}", err=True)
        return error.exit_status
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("autograder: interrupted; what was finished is kept", err=True)
        return Exit.INTERRUPTED
    except Exception as error:
        traceback.print_exc()
        click.echo(f"autograder: our own failure, please report it: {type(error).__name__}: {error}", err=True)
        return Exit.FAILURE
    return int(status or Exit.YES)
