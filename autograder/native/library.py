"""What a compiled kernel may be before it is loaded: only plain code and data, and only calls of the runner.

The library comes from the compiler's sandbox as bytes and is read here, never loaded. A kernel cannot call what it
cannot name: every symbol that it asks for must be one of the runner's or the mathematics library's.
"""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from elftools.elf.elffile import ELFFile

from autograder.native.names import is_of_the_runtime
from autograder.native.tokens import Refused

MAX_BYTES = 16 << 20
POINTER_BYTES = 8
SECTIONS = re.compile(
    r"|\.hash|\.gnu\.hash|\.dynsym|\.dynstr|\.rela\.(?:dyn|plt|got)|\.plt(?:\.got|\.sec)?|\.text|\.rodata|\.eh_frame(?:_hdr)?"
    r"|\.dynamic|\.got(?:\.plt)?|\.data(?:\.rel\.ro)?|\.bss|labkit_shared|\.comment|\.debug_\w+|\.symtab|\.strtab|\.shstrtab"
    r"|\.note\.GNU-stack|\.note\.gnu\.(?:property|build-id)|\.init_array"
)
SECTION_TYPES = {
    *("SHT_NULL", "SHT_PROGBITS", "SHT_NOBITS", "SHT_SYMTAB", "SHT_STRTAB", "SHT_RELA", "SHT_HASH", "SHT_GNU_HASH"),
    *("SHT_DYNSYM", "SHT_DYNAMIC", "SHT_NOTE", "SHT_INIT_ARRAY", "SHT_X86_64_UNWIND"),
}
SEGMENTS = {
    *("PT_LOAD", "PT_DYNAMIC", "PT_NOTE", "PT_GNU_EH_FRAME", "PT_GNU_STACK", "PT_GNU_RELRO", "PT_GNU_PROPERTY"),
}
TAGS = {
    *(
        "DT_NULL",
        "DT_HASH",
        "DT_GNU_HASH",
        "DT_STRTAB",
        "DT_SYMTAB",
        "DT_STRSZ",
        "DT_SYMENT",
        "DT_PLTGOT",
        "DT_PLTRELSZ",
    ),
    *(
        "DT_PLTREL",
        "DT_JMPREL",
        "DT_RELA",
        "DT_RELASZ",
        "DT_RELAENT",
        "DT_RELACOUNT",
        "DT_INIT_ARRAY",
        "DT_INIT_ARRAYSZ",
    ),
}
SYMBOL_TYPES = {"STT_NOTYPE", "STT_OBJECT", "STT_FUNC", "STT_FILE", "STT_SECTION"}
RELOCATIONS = {"EM_X86_64": {1, 6, 7, 8}, "EM_AARCH64": {257, 1025, 1026, 1027}}  # absolute, GOT, PLT, relative
WRITABLE, EXECUTABLE = 2, 1


def admit_library(data: bytes, checked: bool) -> None:
    """Return if a compiled kernel may be loaded by the runner.

    Raises
    ------
    Refused
        If it holds what runs before the kernel, or asks for or defines what is not its own.
    """
    if len(data) > MAX_BYTES:
        raise Refused(0, f"the compiled kernel: expected at most {MAX_BYTES >> 20} MiB, got {len(data) >> 20}")
    try:
        file = ELFFile(io.BytesIO(data))
        for problem in _problems(file, checked):
            raise Refused(0, problem)
    except Refused:
        raise
    except Exception as error:  # whatever a reader of ELF files trips over
        raise Refused(0, f"the compiled kernel cannot be read ({type(error).__name__})") from None


def admit_calls(apart: Sequence[str]) -> None:
    """Return if a checked kernel calls nothing that may read a structure unseen; the compiler's sandbox looked for it.

    Raises
    ------
    Refused
        If it does: such reads are neither checked nor counted.
    """
    if "" in apart:
        raise Refused(
            0, "a call through a pointer, or of a virtual function, is not graded: call a function by its name"
        )
    if apart:
        raise Refused(0, f"{apart[0]} takes a structure and calls itself, which is not graded: pass it by reference")


def _problems(file: Any, checked: bool) -> Iterator[str]:
    """Yield what is wrong, in words for a student where a student can cause it."""
    if file["e_type"] != "ET_DYN" or file["e_machine"] not in RELOCATIONS:
        yield "the compiled kernel is no shared library of this machine"
    for segment in file.iter_segments():
        yield from _segment_problems(segment)
    for section in file.iter_sections():
        yield from _section_problems(section, checked, RELOCATIONS[file["e_machine"]])


def _segment_problems(segment: Any) -> Iterator[str]:
    kind, flags = segment["p_type"], segment["p_flags"]
    if kind not in SEGMENTS:
        yield f"a segment of type {kind} is not among those of a graded kernel"
    if flags & EXECUTABLE and (flags & WRITABLE or kind == "PT_GNU_STACK"):
        yield "memory that is both written and run is not graded"
    if kind == "PT_DYNAMIC":
        for tag in segment.iter_tags():
            if tag.entry.d_tag not in TAGS:
                yield f"the compiled kernel asks its loader for {tag.entry.d_tag}"


def _section_problems(section: Any, checked: bool, relocations: set[int]) -> Iterator[str]:
    if section.name == ".init_array" and section["sh_size"] > (POINTER_BYTES if checked else 0):
        yield "a variable whose first value is computed before the kernel starts is not graded: set it in the kernel"
    if not SECTIONS.fullmatch(section.name) or section["sh_type"] not in SECTION_TYPES:
        yield f"a section {section.name} ({section['sh_type']}) is not among those of a graded kernel"
    if section["sh_type"] in ("SHT_SYMTAB", "SHT_DYNSYM"):
        for symbol in section.iter_symbols():
            yield from _symbol_problems(symbol)
    if section["sh_type"] == "SHT_RELA":
        for relocation in section.iter_relocations():
            if relocation["r_info_type"] not in relocations:
                yield f"a relocation of type {relocation['r_info_type']} is not among those of a graded kernel"


def _symbol_problems(symbol: Any) -> Iterator[str]:
    name, kind = symbol.name, symbol["st_info"]["type"]
    if kind not in SYMBOL_TYPES:
        yield f"{name}: a symbol of type {kind} is not graded"
    if symbol["st_shndx"] == "SHN_UNDEF":
        if name and not is_of_the_runtime(name):
            yield f"{name} is not a function that a graded kernel may call"
    elif is_of_the_runtime(name):
        yield f"{name} is the name of a function of the runtime: choose another"
