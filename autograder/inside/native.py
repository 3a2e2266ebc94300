"""One request about a kernel in CUDA C, in a sandbox of its own: compile it, or launch what was compiled.

What is kept between sandboxes, the runner's program and the compiled libraries, travels as files of labkit's cache:
each is named after a digest of all that it was made from. A launch runs in a child process, which the gate and the
sandbox hold; whatever it reports is a claim, and the judge takes it as such.
"""

import contextlib
import ctypes
import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from . import values

LABKIT_CUDA = "labkit.cuda"
REQUEST = "request"
CACHE_VARIABLE = "LABKIT_CACHE"
NOT_DUMPABLE = 4  # prctl's PR_SET_DUMPABLE
MAX_FAULTS, MAX_TEXT, MAX_NAME = 3, 4000, 200
DISASSEMBLER = "objdump"
FUNCTION = re.compile(r"[0-9a-f]+ <(.+)>:")
CALL = re.compile(r"\t(?:call|blr?)\s+(?:[0-9a-f]+ <(?P<target>.+)>$|.)")  # of x86-64, and of arm64
PARAMETERS = re.compile(r"\(([^()<>]*)\)(?: \[clone [^\]]*\])?$")
PLAIN = re.compile(r"|.*[*&]|(?:unsigned |signed )?(?:bool|char|short|int|long|long long|float|double)")
OWN_FUNCTION = re.compile(r"(?:\w+ )*(?:labkit_\w+|\w+_unchecked)[(<]")  # no name of a student's: the gate sees to it


def answer(work: Path, reply: int) -> None:
    """Answer the request that lies in the working folder, as bytes into a pipe."""
    ctypes.CDLL(None).prctl(NOT_DUMPABLE, 0, 0, 0, 0)  # the child may not look into this process, or at its pipes
    os.set_inheritable(reply, False)
    request = work / REQUEST
    asked = values.decode(request.read_bytes())
    request.unlink()
    os.environ[CACHE_VARIABLE] = str(_unpack(asked["files"], work / "cache"))
    said = perform(asked)
    with os.fdopen(reply, "wb") as pipe:
        pipe.write(values.encode(said))


def _labkit_cuda() -> Any:
    """Return the sandbox's own labkit, which is not the one that the autograder is installed with."""
    return importlib.import_module(LABKIT_CUDA)


def _unpack(files: dict[str, bytes], folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    for name, content in files.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o700)
    return folder


def perform(asked: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked; what goes wrong is an answer too."""
    cuda = _labkit_cuda()
    try:
        return {"warm": _warm, "compile": _compile, "launch": _launch}[asked["op"]](asked)
    except cuda.CudaError as error:
        return {"error": _error(error)}
    except MemoryError:
        return {"error": {"kind": "out_of_memory", "line": None, "text": ""}}
    except Exception as error:  # the child can make its report unreadable
        text = f"{type(error).__name__}: {error}"[:MAX_TEXT]
        return {"error": {"kind": "unreadable", "line": None, "text": text}}


def _error(error: Any) -> dict[str, Any]:
    faults = [
        {"kind": fault.kind, "line": fault.line, "text": fault.text[:MAX_TEXT]}
        for fault in getattr(error, "faults", ())[:MAX_FAULTS]
    ]
    return {"kind": error.kind, "line": error.line, "text": str(error)[:MAX_TEXT], "faults": faults}


def _warm(asked: dict[str, Any]) -> dict[str, Any]:
    """Build the runner: nothing of a student's is here."""
    importlib.import_module(f"{LABKIT_CUDA}.build").warm_up()
    return _made(asked)


def _made(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the files that the cache has and had not."""
    made = [path for path in sorted(Path(os.environ[CACHE_VARIABLE]).iterdir()) if path.is_file()]
    return {"files": {path.name: path.read_bytes() for path in made if path.name not in asked["files"]}}


def _compile(asked: dict[str, Any]) -> dict[str, Any]:
    module = _labkit_cuda().RawModule(code=asked["code"])
    for name in asked["kernels"]:
        module.get_function(name)
    made = [module.compiled(checked) for checked in asked["checked"]]
    apart = _called_apart(made[0].library, asked["kernels"])
    nvrtc = importlib.import_module(f"{LABKIT_CUDA}.nvrtc")
    found = {"apart": apart, "nvrtc": nvrtc.version() if nvrtc.is_installed() else ""}
    return _made(asked) | found | {"libraries": [compiled.library.name for compiled in made]}


def _called_apart(library: Path, kernels: Sequence[str]) -> list[str]:
    """Return what a checked kernel calls that may read a structure unseen; a pointer to a function is an empty name.

    A function that is made part of the kernel reads what it is passed by value as the kernel does. One that is not, for
    it calls itself, is passed a structure straight from memory.
    """
    if not shutil.which(DISASSEMBLER):
        raise _labkit_cuda().MissingToolError(f"{DISASSEMBLER}: expected it beside the C++ compiler, got none")
    command = [DISASSEMBLER, "--disassemble", "--demangle", "--no-show-raw-insn", "--section=.text", str(library)]
    listing = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout
    found: dict[str, None] = {}
    is_kernel = False
    for line in listing.splitlines():
        if head := FUNCTION.fullmatch(line):
            is_kernel = head[1] in kernels
        elif is_kernel and (call := CALL.search(line)) and _takes_structures(call["target"] or ""):
            found[(call["target"] or "")[:MAX_NAME]] = None
    return list(found)


def _takes_structures(function: str) -> bool:
    """Return whether a function, by its name in the listing, may take more than numbers and pointers."""
    if function.endswith("@plt") or OWN_FUNCTION.match(function):
        return False
    parameters = PARAMETERS.search(function)
    return not parameters or any(not PLAIN.fullmatch(kind.strip()) for kind in parameters[1].split(","))


def _launch(asked: dict[str, Any]) -> dict[str, Any]:
    """Run the launches one after another on the same arrays, anew for each order."""
    return {"runs": [_run(asked, order) for order in asked["orders"]]}


def _run(asked: dict[str, Any], order: int) -> dict[str, Any]:
    module = _labkit_cuda().RawModule(code=asked["code"])
    arrays = [array.copy() for array in asked["arrays"]]
    traffic = []
    for launch in asked["launches"]:
        kernel = module.get_function(launch["kernel"])
        arguments = _arguments(launch["args"], arrays)
        with _quiet():
            kernel(
                launch["grid"], launch["block"], arguments, shared_mem=launch["shared_mem"],
                order=order, limit_s=asked["limit_s"], checked=asked["checked"],
            )  # fmt: skip
        traffic.append(_traffic(kernel.report) if asked["checked"] else [])
    return {"arrays": arrays, "traffic": traffic}


def _arguments(described: Sequence[Any], arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """Return the arguments of a launch: an array by its number, or a value."""
    return tuple(arrays[what] if kind == "array" else what for kind, what in described)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What a kernel prints goes nowhere."""
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def _traffic(report: Any) -> list[dict[str, Any]]:
    return [
        {"line": line.line, "verb": line.verb, "space": line.space, "counts": asdict(line.counts)}
        for line in report.lines
    ]
