"""What one sandbox may use. A lab's header may set any of these; nothing else does."""

from dataclasses import dataclass, fields
from typing import Any

from autograder.errors import CourseError

MiB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits of one sandbox, in the unit that each name ends with."""

    memory_bytes: int = 2048 * MiB
    disk_bytes: int = 128 * MiB
    file_bytes: int = 64 * MiB
    files: int = 20_000
    processes: int = 96
    open_files: int = 256
    cell_seconds: float = 30
    call_seconds: float = 10
    notebook_seconds: float = 300
    reply_bytes: int = 32 * MiB
    output_bytes: int = 2 * MiB
    source_bytes: int = 1 * MiB

    @classmethod
    def from_header(cls, given: dict[str, Any]) -> "Limits":
        """Return the limits that a lab's header sets, the defaults for the others.

        Raises
        ------
        CourseError
            If a name is not a limit or a value is not a positive number.
        """
        known = {field.name for field in fields(cls)}
        for name, value in given.items():
            if name not in known:
                raise CourseError(f"limits: expected one of {', '.join(sorted(known))}, got {name!r}")
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise CourseError(f"limits: expected a positive number for {name}, got {value!r}")
        return cls(**given)
