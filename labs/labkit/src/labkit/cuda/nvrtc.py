"""NVIDIA's own compiler as a check of the source: needs neither a GPU nor a driver."""

import ctypes
import functools
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

FILE_NAME = "kernel.cu"
"""What the source is called in every compiler's messages."""

ARCHITECTURE = "compute_80"
"""What a source is checked for: `compute_…` ends with PTX, `sm_…` with a program for one kind of GPU."""


@dataclass(frozen=True)
class Verdict:
    """What NVRTC says of a source: is it accepted, the log, and the kernels in the result."""

    accepted: bool
    log: str
    entries: tuple[str, ...]


def is_installed() -> bool:
    """Is there an NVRTC to ask?"""
    return _library() is not None


def version() -> str:
    """Return NVRTC's version, as in "13.5"; empty if it is not installed."""
    library = _library()
    if library is None:
        return ""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def judge(
    code: str, options: tuple[str, ...] = (), include: Path | None = None, architecture: str = ARCHITECTURE
) -> Verdict:
    """Compile the source, throw the result away, and return what NVRTC says of it."""
    library = _library()
    if library is None:
        raise RuntimeError("NVRTC is not installed")
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), code.encode(), FILE_NAME.encode(), 0, None, None)
    try:
        flags = [f"--gpu-architecture={architecture}", *(["-std=c++17"] if not _names_standard(options) else [])]
        flags += [f"--include-path={include}"] if include else []
        encoded = [flag.encode() for flag in (*flags, *options)]
        status = library.nvrtcCompileProgram(program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded))
        log = _text(library, program, "ProgramLog")
        ptx = _text(library, program, "PTX") if status == 0 else ""
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    return Verdict(status == 0, log.strip(), tuple(re.findall(r"\.entry\s+(\w+)", ptx)))


def _names_standard(options: tuple[str, ...]) -> bool:
    return any(option.startswith(("-std", "--std")) for option in options)


def _text(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    library[f"nvrtcGet{what}Size"](program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    library[f"nvrtcGet{what}"](program, buffer)
    return buffer.value.decode(errors="replace")


@functools.cache
def _library() -> ctypes.CDLL | None:
    """Load the library out of NVIDIA's Python package: whole, since its parts find one another by their folder."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec else []:
        for folder in ("cu13", "cuda_nvrtc"):
            found = sorted(path for path in Path(root, folder, "lib").glob("libnvrtc.so.*") if ".alt" not in path.name)
            for path in reversed(found):
                try:
                    return ctypes.CDLL(str(path))
                except OSError:
                    continue
    return None
