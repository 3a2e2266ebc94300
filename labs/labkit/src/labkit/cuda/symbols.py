"""The variables in a compiled library, read from its symbol table: an ELF file of 64 bits, little end first."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_SECTION_TABLE_AT: Final = 40
_SECTION_COUNTS_AT: Final = 58
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE: Final = 2
_OBJECT: Final = 1
"""A kind of section, and of symbol. Source: System V Application Binary Interface, "Object Files"."""


class Symbol(NamedTuple):
    """A variable: its name in the source, its place, its bytes, and the name of its section."""

    name: str
    address: int
    n_bytes: int
    section: str
    is_local_to_function: bool


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def variables_in(library: Path) -> Iterator[Symbol]:
    """Give every variable that the library defines."""
    data = library.read_bytes()
    sections, names = _sections(data)
    for table in sections:
        if table.kind != _SYMBOL_TABLE:
            continue
        for place in range(table.offset, table.offset + table.size, table.entry_size):
            name_at, info, _, index, address, n_bytes = _SYMBOL.unpack_from(data, place)
            if info & 15 != _OBJECT or not n_bytes or index >= len(sections):
                continue
            mangled = _text(data, sections[table.link].offset + name_at)
            yield Symbol(plain_name(mangled), address, n_bytes, names[index], mangled.startswith("_ZZ"))


def section_names(compiled: Path) -> list[str]:
    """Return the names of the sections of a library, or of what is yet to be linked."""
    return _sections(compiled.read_bytes())[1]


def _sections(data: bytes) -> tuple[list[_Section], list[str]]:
    (table_at,) = struct.unpack_from("<Q", data, _SECTION_TABLE_AT)
    size, count, names_index = struct.unpack_from("<HHH", data, _SECTION_COUNTS_AT)
    sections = [_Section(*_SECTION.unpack_from(data, table_at + i * size)) for i in range(count)]
    return sections, [_text(data, sections[names_index].offset + section.name) for section in sections]


def plain_name(mangled: str) -> str:
    """Return the last name in a name that C++ has changed: `_ZZ9transposeE4tile_0` is `tile`.

    >>> plain_name("_ZZ6kernelE4tile"), plain_name("_ZZ4foldILb1EEvfE6shared"), plain_name("counter")
    ('tile', 'shared', 'counter')
    >>> plain_name("_ZZ8mirroredIfLi9EET_S0_E5slots"), plain_name("_ZZ1fvE3a_1_0")
    ('slots', 'a_1')
    """
    if mangled.startswith("_ZZ"):
        for length in re.finditer(r"E(\d+)", mangled):  # of a function's own variable, behind the function
            end = length.end() + int(length[1])
            name, rest = mangled[length.end() : end], mangled[end:]
            if name.isidentifier() and re.fullmatch(r"(?:_\d|__\d+_)?", rest):
                return name
    if not mangled.startswith("_Z"):
        return re.sub(r"\.\d+$", "", mangled)
    names = []
    place = 0
    while found := re.compile(r"\d+").search(mangled, place):
        end = found.end() + int(found[0])
        name = mangled[found.end() : end]
        place = end if name.isidentifier() else found.end()
        if name.isidentifier() and len(name) == int(found[0]):
            names.append(name)
    return names[-1] if names else mangled


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode(errors="replace")
