"""What can be read off a kernel's source without compiling it: its kernels, their parameters, what is outside."""

import re
from dataclasses import dataclass

from labkit.cuda.errors import CompileError

_COMMENT = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S)
_QUALIFIER = r"(?:__launch_bounds__\s*\([^)]*\)\s*|static\s+|inline\s+)*"
_KERNEL = re.compile(rf"__global__\s+{_QUALIFIER}void\s+{_QUALIFIER}(\w+)\s*\(([^)]*)\)\s*\{{", re.S)
_ALIGN = r"(?:(?:__align__|alignas)\s*\([^)/\\\"'#]*\)\s*)?"
# Neither pattern can match one text in two ways, or begin or end a comment: a declaration is read in one pass.
_DYNAMIC_SHARED = re.compile(
    rf"\bextern\s+{_ALIGN}__shared__\s+{_ALIGN}([\w:]+(?:\s+[\w:]+)*?)\s+{_ALIGN}(\w+)\s*\[\s*\]\s*;"
)
_DECLARATOR = r"\w+\s*(?:\[[^\]]*\]\s*)*"
_SHARED = re.compile(rf"\b__shared__\s+{_ALIGN}((?:\w+\s+(?=\w))++)({_DECLARATOR}(?:,\s*{_DECLARATOR})*);")
_DEVICE = re.compile(rf"\b__device__\s+((?:\w+\s+(?=\w))++)({_DECLARATOR})[;={{]")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]*)[>"]', re.M)

INCLUDES = frozenset({"cuda_fp16.h", "cuda_bf16.h"})
"""Headers that a kernel may include on the CPU."""

_OUTSIDE = {
    "inline PTX (asm)": r"\b(?:asm|__asm__|__asm)\b",
    "tensor cores (wmma, mma)": r"\bn?v?cuda::wmma\b|\bwmma::|\bmma\.h\b",
    "cooperative groups": r"\bcooperative_groups\b|\bthis_grid\s*\(|\bthis_thread_block\s*\(",
    "textures and surfaces": r"\bcudaTextureObject_t\b|\bcudaSurfaceObject_t\b|\btexture\s*<|\btex[123]D\w*\s*[<(]",
    "asynchronous copies (cuda::pipeline, memcpy_async)": r"\bmemcpy_async\b|\b__pipeline_\w+|\bcuda::pipeline\b",
    "the library libcu++ (cuda::…)": r"\bcuda::(?:std|atomic|barrier|ptx)\b",
    "thread block clusters": r"\b__cluster_dims__\b|\bcluster_group\b",
    "memory from the device's heap (malloc, new)": r"\b(?:malloc|free)\s*\(|\bnew\b|\bdelete\b",
    "virtual functions": r"\bvirtual\b",
    "launching kernels from kernels (<<< >>>)": r"<<<",
    "warp calls without _sync, gone since CUDA 13": r"\b__(?:shfl(?:_xor|_up|_down)?|ballot|any|all)\s*\(",
}
_OUTSIDE_PATTERNS = {name: re.compile(pattern) for name, pattern in _OUTSIDE.items()}


@dataclass(frozen=True)
class Kernel:
    """A `__global__` function of the source: its name and the names of its parameters."""

    name: str
    parameters: tuple[str, ...]
    is_extern_c: bool


@dataclass(frozen=True)
class DeclaredArray:
    """A `__shared__` or `__device__` variable as it is declared: the type of its elements and its extents as text."""

    name: str
    type: str
    extents: tuple[str, ...]


def without_comments(code: str) -> str:
    """Blank comments and strings, keeping every line where it is."""
    return _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), code)


def kernels_of(code: str) -> tuple[Kernel, ...]:
    """Return the kernels that the source defines, templates left out."""
    plain = without_comments(code)
    with_strings = _with_strings(code)
    return tuple(
        Kernel(found[1], _parameter_names(found[2]), _is_extern_c(with_strings, found.start()))
        for found in _KERNEL.finditer(plain)
        if not re.search(r"template\s*<[^;{}]*>\s*$", plain[: found.start()])
    )


def refuse_what_is_outside(code: str) -> None:
    """Raise CompileError, kind `unsupported`, for what has no counterpart on the CPU."""
    plain = without_comments(code)
    for name, pattern in _OUTSIDE_PATTERNS.items():
        if found := pattern.search(plain):
            raise _unsupported(code, found.start(), name)
    for found in _INCLUDE.finditer(_with_strings(code)):
        if found[1] not in INCLUDES:
            raise _unsupported(code, found.start(), f"#include <{found[1]}>")


def for_the_cpu(code: str) -> str:
    """Rewrite `extern __shared__ T name[];`, which C++ has no word for, as a pointer to where that memory is."""
    return _DYNAMIC_SHARED.sub(_as_a_pointer, code)


def shared_arrays_of(code: str) -> dict[str, DeclaredArray]:
    """Return the `__shared__` arrays of the source by name."""
    return _declared(_SHARED, code)


def device_arrays_of(code: str) -> dict[str, DeclaredArray]:
    """Return the `__device__` variables of the source by name."""
    return _declared(_DEVICE, code)


def _declared(pattern: re.Pattern[str], code: str) -> dict[str, DeclaredArray]:
    arrays = {}
    for found in pattern.finditer(without_comments(code)):
        for name, extents in re.findall(r"(\w+)\s*((?:\[[^\]]*\]\s*)*)", found[2]):
            arrays[name] = DeclaredArray(name, " ".join(found[1].split()), tuple(re.findall(r"\[([^\]]*)\]", extents)))
    return arrays


def line_of(code: str, position: int) -> int:
    """Return the line, counted from 1, that a position of the text is in."""
    return code.count("\n", 0, position) + 1


def quote(code: str, line: int | None) -> str:
    """Return the line as a message shows it: its number and its text."""
    lines = code.split("\n")
    if line is None or not 1 <= line <= len(lines):
        return "  at a line that the compiler does not name"
    return f"  line {line}: {lines[line - 1].strip()}"


def _as_a_pointer(found: re.Match[str]) -> str:
    """Keep the lines: a directive or a comment before them must not grow."""
    kind = " ".join(found[1].split())
    return f"{kind}* const {found[2]} = ({kind}*)LABKIT_DYNAMIC_SHARED;" + "\n" * found[0].count("\n")


def _parameter_names(parameters: str) -> tuple[str, ...]:
    parts = [part.strip() for part in parameters.split(",") if part.strip()]
    return tuple(re.split(r"[\s*&]+", re.sub(r"\[[^\]]*\]$", "", part))[-1] for part in parts if part != "void")


def _with_strings(code: str) -> str:
    return _COMMENT.sub(
        lambda found: found.group() if found.group()[0] in "\"'" else re.sub(r"[^\n]", " ", found.group()), code
    )


def _is_extern_c(code: str, position: int) -> bool:
    """Is the text right after `extern "C"`, or inside of its braces?"""
    before = code[:position]
    if re.search(r'extern\s+"C"\s*(?:\w+\s+)*$', before):
        return True
    return any(_is_open(before[block.end() :]) for block in re.finditer(r'extern\s+"C"\s*\{', before))


def _is_open(text: str) -> bool:
    depth = 1
    for brace in re.findall(r"[{}]", text):
        depth += 1 if brace == "{" else -1
        if depth == 0:
            return False
    return True


def _unsupported(code: str, position: int, what: str) -> CompileError:
    line = line_of(code, position)
    text = (
        f"Outside of what runs on the CPU: {what}\n{quote(code, line)}\n"
        "  The kernel may well be right on a GPU. Here, write it with ordinary C++, shuffles and shared memory."
    )
    return CompileError("unsupported", text, line)
