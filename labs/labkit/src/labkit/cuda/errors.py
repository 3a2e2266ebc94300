"""What can go wrong between a kernel's source and its result, each with one readable text."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fault:
    """One thing found wrong in a kernel: its kind, the line of the source, and the message about it."""

    kind: str
    line: int | None
    text: str
    other_line: int | None = field(default=None)
    """Where the second of two accesses that race is."""


class CudaError(Exception):
    """A kernel that cannot be compiled, launched or run to its end; `kind` names why in one word."""

    def __init__(self, kind: str, text: str, line: int | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.line = line


class MissingToolError(CudaError):
    """This machine lacks what a kernel needs to run; the text says what to install."""

    def __init__(self, text: str) -> None:
        super().__init__("missing_tool", text)


class CompileError(CudaError):
    """The source is not a kernel: kind `compile`, or `unsupported` for what the CPU run refuses by name."""


class LaunchError(CudaError):
    """The launch is wrong, before any thread runs: kind `argument` or `launch`."""


class KernelError(CudaError):
    """The kernel does what it must not: all faults of one launch, the first found first."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        first = faults[0]
        super().__init__(
            first.kind, "\n\n".join(fault.text for fault in faults[:MOST_SHOWN]) + _rest(faults), first.line
        )
        self.faults = faults


class RunnerError(CudaError):
    """The machine failed, not the kernel: the runner ended without a report."""

    def __init__(self, text: str) -> None:
        super().__init__("runner", text)


MOST_SHOWN = 3
"""Faults quoted in full in one message: the later ones are mostly consequences of the first."""


def _rest(faults: tuple[Fault, ...]) -> str:
    n = len(faults) - MOST_SHOWN
    return f"\n\nand {n} more, of which the first may be the cause" if n > 0 else ""
