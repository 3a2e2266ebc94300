"""From places in a compiled kernel back to the source: lines for instructions, names for shared memory."""

import functools
import json
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from labkit.cuda.nvrtc import FILE_NAME
from labkit.cuda.source import DeclaredArray
from labkit.cuda.symbols import variables_in

_SIZES = {
    "char": 1, "bool": 1, "short": 2, "int": 4, "unsigned": 4, "float": 4, "long": 8, "double": 8, "size_t": 8,
    "half": 2, "__half": 2, "__nv_bfloat16": 2, "half2": 4, "__half2": 4, "__nv_bfloat162": 4,
}  # fmt: skip
SHARED_SECTION = "labkit_shared"
"""Where the linker puts the `__shared__` variables (device/keywords.h)."""

_VECTOR = re.compile(r"u?(char|short|int|long|longlong|float|double)([1-4])")


@dataclass(frozen=True)
class Variable:
    """A variable of the compiled kernel: its place in the library, and whether it is shared by a block."""

    name: str
    address: int
    n_bytes: int
    is_shared: bool


def lines_of(library: Path, codes: Iterable[int]) -> dict[int, int | None]:
    """Return the line of the source that each instruction belongs to; `codes` are addresses that calls return to."""
    frames = _frames(library, (code - 1 for code in codes if code))
    # of functions made part of one another, the innermost that the source holds
    return {address + 1: next((line for line in lines if line), None) for address, lines in frames.items()}


def own_lines_of(library: Path, addresses: Iterable[int]) -> dict[int, int | None]:
    """Return the line of each instruction that the source itself holds; None for one of a function of the runtime."""
    return {address: lines[0] if lines else None for address, lines in _frames(library, addresses).items()}


def _frames(library: Path, addresses: Iterable[int]) -> dict[int, list[int | None]]:
    """Return for each instruction the lines it belongs to, innermost function first; None for a line of other text."""
    frames: dict[int, list[int | None]] = {address: [] for address in sorted(set(addresses))}
    if not frames:
        return frames
    command = ["addr2line", "-a", "-i", "-e", str(library), *map(hex, frames)]
    said = subprocess.run(command, capture_output=True, errors="replace", check=False).stdout
    current = 0
    for text in said.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", text):
            current = int(text, 16)
        else:
            found = re.search(rf"(?:^|/){re.escape(FILE_NAME)}:(\d+)", text)
            frames[current].append(int(found[1]) if found else None)
    return frames


def names_file(library: Path) -> Path:
    """Return the file beside a library that lists its variables."""
    return library.with_suffix(".names")


def write_variables(library: Path, names: Path, shared_names: Iterable[str]) -> None:
    """List the variables of a new library, once: what a launch needs and a message names.

    A shared variable is one in the section of those, or one that a function holds under the name of one.
    """
    shared, rows = set(shared_names), []
    for symbol in variables_in(library):
        is_shared = symbol.section == SHARED_SECTION or (symbol.is_local_to_function and symbol.name in shared)
        if not symbol.name.startswith("labkit_"):
            rows.append([symbol.name, symbol.address, symbol.n_bytes, is_shared])
    made = names.with_name(f"{names.name}.{os.getpid()}")
    made.write_text(json.dumps(rows))
    made.replace(names)


@functools.lru_cache(maxsize=256)
def variables(library: Path) -> tuple[Variable, ...]:
    """Return the variables of a library, in the order in which they lie."""
    rows = json.loads(names_file(library).read_text())
    return tuple(sorted((Variable(*row) for row in rows), key=lambda variable: variable.address))


def shared_variable(library: Path, offset: int) -> tuple[Variable | None, int]:
    """Return the shared variable that a byte of shared memory is in or behind, and the byte counted from its start."""
    shared = [variable for variable in variables(library) if variable.is_shared]
    if not shared:
        return None, offset
    address = shared[0].address + offset
    variable = max((v for v in shared if v.address <= address), key=lambda v: v.address, default=shared[0])
    return variable, address - variable.address


def plain_variable(library: Path, address: int) -> tuple[Variable | None, int]:
    """Return the variable, not a shared one, that holds an address of the library, and the byte in it."""
    for variable in variables(library):
        if not variable.is_shared and variable.address <= address < variable.address + variable.n_bytes:
            return variable, address - variable.address
    return None, address


def name_of_variable(library: Path, declared: dict[str, DeclaredArray], address: int) -> str:
    """Return the element of a `__device__` variable at an address, as the source would write it: `total[2]`."""
    variable, rest = plain_variable(library, address)
    if variable is None:
        return "a variable of the kernel"
    return element(variable.name, declared.get(variable.name), variable.n_bytes, rest)


def name_of_shared(library: Path, declared: dict[str, DeclaredArray], offset: int) -> str:
    """Return the element of shared memory at an offset, as the source would write it: `tile[3][17]`."""
    variable, rest = shared_variable(library, offset)
    if variable is None:
        return f"byte {offset} of the static shared memory"
    return element(variable.name, declared.get(variable.name), variable.n_bytes, rest)


def element(name: str, array: DeclaredArray | None, n_bytes: int, offset: int) -> str:
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
