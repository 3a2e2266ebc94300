"""From a source to a shared library that the runner can load, and the runner itself: compiled once and kept."""

import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from labkit import cache
from labkit.cuda import nvrtc
from labkit.cuda.errors import CompileError, MissingToolError, RunnerError
from labkit.cuda.places import SHARED_SECTION, names_file, write_variables
from labkit.cuda.source import Kernel, for_the_cpu, kernels_of, quote, refuse_what_is_outside, shared_arrays_of
from labkit.cuda.symbols import section_names

HERE = Path(__file__).parent
COMPILER_VARIABLE = "LABKIT_CXX"
INSTALL_COMPILER = "sudo apt-get install g++"
INSTALL_NVRTC = "pip install 'labkit[kernels]'"

_COMMON = (
    *("-std=c++17", "-fPIC", "-pipe", "-w", "-fdiagnostics-color=never"),
    *("-fno-exceptions", "-fno-rtti", "-fvisibility=hidden"),
    "-ffp-contract=off",  # every operation rounds once, as the NumPy references do
    "-fno-math-errno",
    "-fno-strict-aliasing",  # kernels view bytes as words
    "-fno-finite-loops",  # an endless loop is found, not removed
    "-fstack-clash-protection",  # a large local array meets the guard page
    "-fno-weak",  # else __shared__ in an inline function is a section conflict
)
_UNCHECKED = ("-O2", "-g1", "-gdwarf-4")
_CHECKED = (
    *("-O1", "-g1", "-gdwarf-4", "-fno-omit-frame-pointer"),  # version 5: binutils 2.40 names the wrong file of a line
    "-fno-tree-sra",  # a float4 is loaded at once, as it is on a GPU
    "-fno-var-tracking",  # which -g1 has no use for
    "-fsanitize=thread,bounds,object-size,alignment,shift-exponent",
    "-fsanitize=integer-divide-by-zero,float-cast-overflow,return,unreachable",
    "-fno-sanitize-recover=return,unreachable",
    *("--param=tsan-instrument-func-entry-exit=0", "--param=tsan-distinguish-volatile=1"),
)
_BRANCHES = ("-O1", "-g1", "-gdwarf-4", "-fno-omit-frame-pointer", "-fno-var-tracking", "-fsanitize-coverage=trace-pc")
_GAP_BYTES = 1024  # whole rows of banks, so that conflicts stay what they are
_RUNNER = ("-std=c++17", "-O3", "-fno-tree-slp-vectorize", "-w")
_SHAPING = tuple(HERE / f"{name}.py" for name in ("build", "places", "source", "symbols"))
"""Modules that shape what is kept: a change of theirs makes it void."""


@dataclass(frozen=True)
class Compiled:
    """A source on its way through the compilers: the library, where it is loaded from, and its kernels."""

    library: Path
    kernels: tuple[Kernel, ...]
    entries: tuple[str, ...]
    """What a launch may name, in the order of the library's entries."""


def require_platform() -> None:
    """Raise MissingToolError where nothing runs: the runner is Linux's, on x86-64 and arm64."""
    machine = platform.machine().lower()
    if sys.platform.startswith("linux") and machine in ("x86_64", "amd64", "aarch64", "arm64"):
        return
    raise MissingToolError(
        f"platform: expected Linux on x86-64 or arm64, got {platform.system()} on {machine}.\n"
        "  The book and the other labs work here. To run kernels use a Linux container (docker run -it python:3.12),\n"
        "  WSL on Windows, a machine of your university, or a notebook service with a GPU."
    )


@functools.cache
def compiler() -> tuple[str, ...]:
    """Return the command of the C++ compiler; MissingToolError if there is none."""
    named = os.environ.get(COMPILER_VARIABLE, "g++").split()
    if not shutil.which(named[0]):
        raise MissingToolError(f"C++ compiler: expected {named[0]}, got none on the search path.\n  {INSTALL_COMPILER}")
    said = subprocess.run([*named, "--version"], capture_output=True, errors="replace", check=False).stdout
    if "Free Software Foundation" not in said:
        raise MissingToolError(
            f"C++ compiler: expected GCC, got {said.partition(chr(10))[0] or named[0]!r}.\n"
            f"  {INSTALL_COMPILER}, or name one in the variable {COMPILER_VARIABLE}."
        )
    return (*named,)


def runner() -> Path:
    """Return the runner's program, compiled on first use."""
    sources = sorted([*HERE.glob("runner/*.cpp")])
    name = f"runner-{_digest(_RUNNER, *_headers('runner'), *sources)}"
    if found := cache.installed(name):
        return found
    try:
        return cache.keep(cache.folder() / name, lambda made: _build_runner(sources, made))
    except CompileError as error:
        raise RunnerError(f"the runner could not be compiled with {' '.join(compiler())}:\n{error}") from None


def compile_kernels(code: str, options: tuple[str, ...], names: tuple[str, ...], checked: bool) -> Compiled:
    """Compile a source for the CPU, after NVRTC has accepted it where it is installed.

    `names` are instances of templates to compile beside the plain kernels, as CuPy's `name_expressions`.
    """
    require_platform()
    refuse_what_is_outside(code)
    return _compile(code, options, names, (*_COMMON, *(_CHECKED if checked else _UNCHECKED)))


def compile_for_branches(code: str, options: tuple[str, ...], names: tuple[str, ...]) -> Compiled:
    """Compile a source that has been compiled before, with a call to the runner in each basic block."""
    return _compile(code, options, names, (*_COMMON, *_BRANCHES))


def warm_up() -> None:
    """Compile the runner now, so that the first launch does not wait for it."""
    require_platform()
    runner()


def _compile(code: str, options: tuple[str, ...], names: tuple[str, ...], flags: tuple[str, ...]) -> Compiled:
    kernels = kernels_of(code)
    entries = (*(kernel.name for kernel in kernels), *names)
    text = _translation_unit(code, entries, _definitions(options))
    library = cache.folder() / f"kernel-{_digest(flags, text, *_headers('device'), *_SHAPING)}.so"
    with ThreadPoolExecutor(1) as background:
        verdict = background.submit(_ask_nvrtc, code, options)
        failure = _try_compile(library, text, flags)
        _require_accepted(code, verdict.result())
    if failure:
        raise _compile_error(code, failure, "g++")
    return Compiled(library, kernels, entries)


def _headers(folder: str) -> list[Path]:
    return sorted({*HERE.glob("device/**/*.h"), *HERE.glob(f"{folder}/*.h")})


def _digest(*parts: object) -> str:
    """Digest everything that a result depends on, the compiler itself included."""
    command = compiler()
    status = Path(shutil.which(command[0]) or command[0]).resolve().stat()
    total = hashlib.sha256(repr((command, status.st_size, status.st_mtime_ns, platform.machine())).encode())
    for part in parts:
        total.update(part.read_bytes() if isinstance(part, Path) else repr(part).encode())
        total.update(b"\0")
    return total.hexdigest()[:24]


def _build_runner(sources: Sequence[Path], made: Path) -> None:
    """Compile the sources side by side, then link them; the kernel finds the runner's symbols by name."""
    objects = [made.with_name(f"{source.stem}.o") for source in sources]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(
            pool.map(
                lambda pair: _run([*compiler(), *_RUNNER, "-c", pair[0], "-o", pair[1]]),
                zip(sources, objects, strict=True),
            )
        )
    _run([*compiler(), "-rdynamic", *objects, "-o", made, "-ldl", "-Wl,--no-as-needed", "-lm"])


def _run(command: Sequence[str | Path]) -> None:
    """Run a compiler; what it quotes of a source may be no text."""
    done = subprocess.run([str(word) for word in command], capture_output=True, errors="replace", check=False)
    if done.returncode:
        raise CompileError("compile", done.stderr)


def _definitions(options: tuple[str, ...]) -> str:
    """Write the macros among CuPy's options behind our own headers; the other options choose what a GPU does."""
    lines = []
    for option in options:
        if found := re.match(r"(?:-D|--define-macro=)\s*([^=]+)=?(.*)", option, re.S):
            lines.append(f"#define {found[1]} {found[2] or 1}")
        elif found := re.match(r"(?:-U|--undefine-macro=)\s*(.+)", option):
            lines.append(f"#undef {found[1]}")
    return "".join(f"{line}\n" for line in lines)


def _translation_unit(code: str, entries: tuple[str, ...], definitions: str) -> str:
    ends = "\n".join(f"LABKIT_ENTRY({number}, ({name}))" for number, name in enumerate(entries))
    kernels = f'#line 1 "{nvrtc.FILE_NAME}"\n{for_the_cpu(code)}'
    return f'#include "kernel.h"\n{definitions}{kernels}\n#line 1 "entries"\n{ends}\n'


def _try_compile(library: Path, text: str, flags: tuple[str, ...]) -> str:
    """Make the library unless it is there; return what the compiler says against it."""
    try:
        cache.keep(library, lambda made: _build_library(text, flags, made, names_file(library)))
    except CompileError as error:
        return str(error)
    return ""


def _build_library(text: str, flags: tuple[str, ...], made: Path, names: Path) -> None:
    """Compile, then link without a sanitiser's library: the runner stands in for it; list the variables beside it."""
    unit, compiled = made.with_suffix(".cpp"), made.with_suffix(".o")
    unit.write_text(text)
    _run([*compiler(), *flags, "-I", HERE / "device", "-I", HERE / "device" / "include", "-c", unit, "-o", compiled])
    _run([*_linker(_layout(section_names(compiled)), made.with_suffix(".ld")), "-shared", "-o", made, compiled])
    write_variables(made, names, shared_arrays_of(text))


def _layout(sections: Iterable[str]) -> str:
    """Write for the linker how the shared variables lie: a pointer that runs out of one meets nothing for a while."""
    own = [name for name in sections if name.startswith(f"{SHARED_SECTION}.")]
    places = "".join(f"*({name}) . += {_GAP_BYTES}; " for name in own)
    return f"SECTIONS {{ {SHARED_SECTION} : {{ {places}}} }} INSERT AFTER .data;\n" if own else ""


def _linker(layout: str, script: Path) -> tuple[str, ...]:
    """Return the linker itself, which starts faster than the compiler; a compiler that was named brings its own."""
    if layout:
        script.write_text(layout)
    if shutil.which("ld") and COMPILER_VARIABLE not in os.environ:
        return ("ld", "-T", str(script)) if layout else ("ld",)
    return (*compiler(), f"-Wl,-T,{script}") if layout else compiler()


def _ask_nvrtc(code: str, options: tuple[str, ...]) -> nvrtc.Verdict | None:
    """Return NVRTC's verdict, kept beside the library: asking again costs as much as compiling."""
    if not nvrtc.is_installed():
        return None
    path = (
        cache.folder()
        / f"verdict-{_digest(code, options, nvrtc.version(), nvrtc.ARCHITECTURE, *_headers('device'))}.json"
    )

    def ask(made: Path) -> None:
        made.write_text(json.dumps(asdict(nvrtc.judge(code, options, HERE / "device" / "include"))))

    said = json.loads(cache.keep(path, ask).read_text())
    return nvrtc.Verdict(said["accepted"], said["log"], tuple(said["entries"]))


def _require_accepted(code: str, verdict: nvrtc.Verdict | None) -> None:
    if verdict is not None and not verdict.accepted:
        raise _compile_error(code, verdict.log, "NVRTC")


def _compile_error(code: str, log: str, who: str) -> CompileError:
    """Name the first line that a compiler complains about, then quote the compiler."""
    found = re.search(rf"{re.escape(nvrtc.FILE_NAME)}[:(](\d+)[:)].*?\berror\b", log)
    line = int(found[1]) if found else None
    place = f"\n{quote(code, line)}" if line else ""
    return CompileError("compile", f"{who} does not accept the source.{place}\n{log.strip()}", line)
