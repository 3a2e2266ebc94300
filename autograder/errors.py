"""Whose fault it is: the three roots of every error that the autograder raises.

AutograderError
├── UsageError        the command was called wrongly: exit 64
├── CourseError       our files are wrong: stop, exit 3
├── SubmissionError   the submission cannot be graded: a result, exit 2
└── SandboxError      the machine failed: retry, then not graded; exit 3
"""


class AutograderError(Exception):
    """An error with a message for a person: what was expected, what came, what to do next."""

    exit_status = 3


class UsageError(AutograderError):
    """The command line, or an argument of a public function, is not usable."""

    exit_status = 64


class CourseError(AutograderError):
    """A file of the course itself is wrong: nobody's submission can be blamed."""


class SubmissionError(AutograderError):
    """The submission holds nothing that can be graded; the text says why."""

    exit_status = 2


class SandboxError(AutograderError):
    """The machine could not run the submission; nothing is known about the submission."""
