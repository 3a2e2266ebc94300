"""`autograder doctor`: what this machine can do, and how to get what it lacks."""

from autograder.cli.command import Exit, command
from autograder.course import Course


@command("doctor", examples=("autograder doctor", "autograder doctor --course /srv/courses/kv-cache"))
def doctor(course: Course) -> Exit:
    """Say what this machine can do, and lacks.

    And how to get it. Tries the sandbox from inside (network, files, limits), looks for the compiler, NVRTC
    and a GPU, opens the gradebook and nbgrader's exchange. Leaves with 1 if anything that grading needs is
    missing.
    """
    from autograder.cli import show
    from autograder.doctor import examine

    findings = list(examine(course))
    show.findings(findings)
    return Exit.NO if any(finding.needed and not finding.ok for finding in findings) else Exit.YES
