"""Branches of a launch: for each line that decides where a thread goes, how often a warp's lanes part there.

Lanes of a warp that go different ways take them one after another: a *divergent* branch costs the time of both. To
count them the launch is run once more, compiled with a call in each basic block, when a report is first asked for its
branches. The n-th time of one lane at a branch is compared with the n-th time of another, as the counts of accesses
are: for a branch inside of another that has parted the lanes before, that is an estimate.

A branch is what g++ makes one: a choice between two values, such as `x > 0 ? x : 0`, mostly becomes none, on a GPU too;
`a && b` is two. One that every thread leaves the same way each time is not listed.
"""

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from labkit.cuda.places import own_lines_of

_CALL: Final = re.compile(r"^\s*([0-9a-f]+):\s+(?:callq?|bl)\s.*__sanitizer_cov_trace_pc")
_INSTRUCTION: Final = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(\S*)")
_CONDITIONAL: Final = re.compile(r"j(?!mp)\w+|b\.\w+|cbn?z|tbn?z|br")


@dataclass(frozen=True)
class BranchLine:
    """The branches of one line: how often warps executed them, and how often their lanes parted."""

    line: int
    text: str
    executed: int
    divergent: int


def branch_lines(library: Path, said: Iterable[dict[str, Any]], code: str) -> tuple[BranchLine, ...]:
    """Sum what the runner counted for basic blocks by the lines of the branches that end them."""
    ends = _ends_of_blocks(library)
    counted = [(ends[item["code"]], item) for item in said if item["code"] in ends]
    lines = own_lines_of(library, [end for end, _ in counted])
    texts, sums = code.split("\n"), dict[int, list[int]]()
    for end, item in counted:
        if line := lines.get(end):  # a branch of the runtime's own functions is none of the kernel's
            total = sums.setdefault(line, [0, 0])
            total[0] += item["executed"]
            total[1] += item["divergent"]
    return tuple(BranchLine(line, texts[line - 1].strip(), *sums[line]) for line in sorted(sums))


def _ends_of_blocks(library: Path) -> dict[int, int]:
    """Return for each basic block, named by where its call returns to, the address of the jump that ends it."""
    command = ["objdump", "-d", "--no-show-raw-insn", str(library)]
    said = subprocess.run(command, capture_output=True, errors="replace", check=False).stdout
    ends: dict[int, int] = {}
    block = returns_to = None
    for text in said.splitlines():
        found = _INSTRUCTION.match(text)
        if found and returns_to:
            block, returns_to = int(found[1], 16), False
        if _CALL.match(text):
            block, returns_to = None, True
        elif found and block is not None and _is_fork(found[2], found[3]):
            ends[block] = int(found[1], 16)
    return ends


def _is_fork(instruction: str, operand: str) -> bool:
    """Is it a jump that depends on something: on a condition, or on a table?"""
    return bool(_CONDITIONAL.fullmatch(instruction)) or (instruction.startswith("jmp") and operand.startswith("*"))
