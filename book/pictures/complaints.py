"""What the CPU run says about a kernel that is wrong, set to the width of the page."""

import textwrap
from collections.abc import Sequence
from typing import Any, Final

from labkit.cuda import KernelError, RawKernel

WIDTH: Final = 78


def complain(code: str, name: str, threads: tuple[int, int], args: Sequence[Any]) -> None:
    """Launch a kernel on (blocks, threads of each) and print what is wrong with it, each kind of fault once."""
    print(complaint(code, name, threads, args))


def complaint(code: str, name: str, threads: tuple[int, int], args: Sequence[Any]) -> str:
    """Return the message that a launch ends with.

    Raises
    ------
    AssertionError
        If nothing is found: the page would teach that the kernel is right.
    """
    blocks, block = threads
    try:
        RawKernel(code, name)((blocks,), (block,), args)
    except KernelError as error:
        first_of_kind = {fault.kind: fault.text for fault in reversed(error.faults)}
        kinds = dict.fromkeys(fault.kind for fault in error.faults)
        return "\n".join(wrapped(line) for kind in kinds for line in first_of_kind[kind].splitlines())
    raise AssertionError(f"{name}: expected a fault, got none")


def wrapped(line: str) -> str:
    """Return a line of a message broken into lines of the page, the later ones indented as deep."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
