"""What runs on a worker: bytes in, bytes out, no gradebook and no secret."""

import signal
from functools import lru_cache
from pathlib import Path
from typing import Any

from distributed import WorkerPlugin

from autograder.classroom import quickstart  # noqa: F401  (imported for its effect)
from autograder.classroom.payload import pack_graded, unpack_task
from autograder.course import Course
from autograder.errors import CourseError
from autograder.grading import grade
from autograder.judging.environments import environment_for
from autograder.lab import Lab, load_lab


def grade_bytes(data: bytes) -> bytes:
    """Grade one packed submission; return its packed outcome.

    Raises
    ------
    CourseError
        If this worker has another version of the lab, or cannot build its environment.
    """
    payload = unpack_task(data)
    course = _course(payload.course)
    lab = _lab(course, payload.lab)
    if lab.version != payload.lab_version:
        raise CourseError(
            f"worker: expected {payload.lab} in version {payload.lab_version[:12]}, has {lab.version[:12]} in "
            f"{course.project}; give it the coordinator's files and start it again"
        )
    prefix = environment_for(course, lab.header.packages, lab.name)
    return pack_graded(grade(payload.submission, lab, payload.student, payload.seed, prefix))


class IgnoreInterrupts(WorkerPlugin):  # type: ignore[misc]
    """Leaves Ctrl-C to the coordinator: a terminal sends it to every process of the job."""

    name = "autograder-ignore-interrupts"

    def setup(self, worker: Any) -> None:
        """Run once in each worker process, in its main thread."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@lru_cache(maxsize=8)
def _course(root: str) -> Course:
    return Course.find(root if Path(root).is_dir() else None)


@lru_cache(maxsize=8)
def _lab(course: Course, name: str) -> Lab:
    """Load a lab once in a process: its modules cannot be loaded twice, so neither can its version."""
    return load_lab(course, name)
