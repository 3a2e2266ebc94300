"""From places in a compiled kernel back to the source: lines for instructions, names for shared memory."""

import functools
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from labkit.cuda.nvrtc import FILE_NAME
from labkit.cuda.source import SharedArray

_SIZES = {
    "char": 1, "bool": 1, "short": 2, "int": 4, "unsigned": 4, "float": 4, "long": 8, "double": 8, "size_t": 8,
    "half": 2, "__half": 2, "__nv_bfloat16": 2, "half2": 4, "__half2": 4, "__nv_bfloat162": 4,
}  # fmt: skip
_VECTOR = re.compile(r"u?(char|short|int|long|longlong|float|double)([1-4])")


@dataclass(frozen=True)
class SharedVariable:
    """A `__shared__` variable of the compiled kernel: its place among all of them."""

    name: str
    offset: int
    n_bytes: int


def lines_of(library: Path, codes: Iterable[int]) -> dict[int, int | None]:
    """Return the line of the source that each instruction belongs to; `codes` are addresses that calls return to."""
    wanted = sorted({code for code in codes if code})
    if not wanted:
        return {}
    command = ["addr2line", "-a", "-i", "-e", str(library), *(hex(code - 1) for code in wanted)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines: dict[int, int | None] = dict.fromkeys(wanted)
    current = 0
    for text in said.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", text):
            current = int(text, 16) + 1
        elif lines.get(current) is None and (found := re.search(rf"(?:^|/){re.escape(FILE_NAME)}:(\d+)", text)):
            lines[current] = int(found[1])  # of inlined functions the innermost that the source holds
    return lines


@functools.lru_cache(maxsize=64)
def shared_variables(library: Path) -> tuple[SharedVariable, ...]:
    """Return the static shared variables, in the order in which they lie."""
    said = subprocess.run(["nm", "-S", "-C", str(library)], capture_output=True, text=True, check=False).stdout
    start = next((int(line.split()[0], 16) for line in said.splitlines() if line.endswith(" __start_labkit_shared")), None)
    stop = next((int(line.split()[0], 16) for line in said.splitlines() if line.endswith(" __stop_labkit_shared")), None)
    if start is None or stop is None:
        return ()
    sized = re.findall(r"^([0-9a-f]{16}) ([0-9a-f]{16}) [dDbB] (.+)$", said, re.M)
    found = [(name, int(address, 16), int(size, 16)) for address, size, name in sized]
    inside = [SharedVariable(_plain(name), address - start, size) for name, address, size in found if start <= address < stop]
    return tuple(sorted((v for v in inside if v.name != "labkit_shared_anchor"), key=lambda v: v.offset))


def name_of_shared(variables: tuple[SharedVariable, ...], declared: dict[str, SharedArray], offset: int) -> str:
    """Return the element of shared memory at an offset, as the source would write it: `tile[3][17]`."""
    for variable in variables:
        if variable.offset <= offset < variable.offset + variable.n_bytes:
            return element(variable.name, declared.get(variable.name), variable.n_bytes, offset - variable.offset)
    return f"byte {offset} of the static shared memory"


def element(name: str, array: SharedArray | None, n_bytes: int, offset: int) -> str:
    """Name the element at a byte of an array; the extents of inner axes must be numbers to tell the axes apart."""
    size = size_of(array.type) if array else None
    if array is None or size is None:
        return name if offset == 0 else f"{name} + {offset} bytes"
    if not array.extents:
        return name
    index, indices = offset // size, []
    inner = [int(extent) for extent in array.extents[1:] if extent.strip().isdigit()]
    if len(inner) < len(array.extents) - 1:
        return f"{name}, element {index} of {n_bytes // size}"
    for extent in reversed(inner):
        index, rest = divmod(index, extent)
        indices.append(rest)
    return name + "".join(f"[{i}]" for i in [index, *reversed(indices)])


def size_of(type_name: str) -> int | None:
    """Return the bytes of a type by its name; None for one that the source defines."""
    words = [word for word in type_name.split() if word not in ("volatile", "const", "signed", "static")]
    if words in (["long", "long"], ["unsigned", "long", "long"]):
        return 8
    if len(words) == 1 and (vector := _VECTOR.fullmatch(words[0])):
        scalar = 8 if vector[1] == "longlong" else _SIZES[vector[1]]
        return scalar * int(vector[2])
    return _SIZES.get(words[-1]) if words else None


def _plain(name: str) -> str:
    """Drop the function that a static variable is in, and the compiler's suffix."""
    return re.sub(r"\.\d+$", "", name.rsplit("::", 1)[-1])
