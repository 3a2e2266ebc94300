"""What the gate lets through and what it refuses, each refusal with its line."""

import re

import fp4kv
import pytest
from fp4kv import kernels

from autograder.native import names
from autograder.native.gate import NotAttempted, admit
from autograder.native.tokens import MAX_BYTES, MAX_LINES, MAX_TOKENS, Refused, lines_of

KERNEL = 'extern "C" __global__ void k(float* x, int n) {{ {0} }}'
BEFORE = '{0}\nextern "C" __global__ void k(float* x, int n) {{ x[0] = 1.0f; }}'

# name: (source, line, words of the rule)
REFUSED = {
    "asm": (KERNEL.format('asm("nop");'), 1, "asm: assembler"),
    "__asm__": (KERNEL.format('__asm__ volatile("syscall");'), 1, "__asm__ is reserved"),
    "asm spliced": (KERNEL.format('as\\\nm("nop");'), 1, "asm: assembler"),
    "asm spliced with blanks": (KERNEL.format('as\\  \nm("nop");'), 1, "asm: assembler"),
    "asm in a macro": (BEFORE.format("#define NOP asm"), 1, "asm: assembler"),
    "asm by pasting": (BEFORE.format("#define P(a, b) a##b\nP(as, m)(\"\");"), 1, "expected no ##"),
    "asm by pasting, digraph": (BEFORE.format("#define P(a, b) a%:%:b"), 1, "%: is another spelling"),
    "asm by a trigraph": (BEFORE.format("#define P(a, b) a??=??=b"), 1, "trigraph"),
    "asm in a dead branch": (BEFORE.format('#if 0\nasm("nop");\n#endif'), 2, "asm: assembler"),
    "asm by a universal character": (KERNEL.format('\\u0061sm("nop");'), 1, "expected C++"),
    "attribute": (BEFORE.format("__attribute__((constructor)) void f() {}"), 1, "__attribute__ is reserved"),
    "attribute in brackets": (BEFORE.format("[[gnu::constructor]] void f() {}"), 1, "gnu: vendor"),
    "attribute, brackets apart": (BEFORE.format("[ /* */ [noreturn]] void f();"), 1, "attributes are not graded"),
    "attribute by digraphs": (BEFORE.format("<:<:noreturn:>:> void f();"), 1, "<: is another spelling"),
    "attribute by macros": (BEFORE.format("#define A [[noreturn]]"), 1, "attributes are not graded"),
    "attribute by __align__": (
        BEFORE.format('#define N 8), section("x"), aligned(8\n__align__(N) int y;'), 1, "brackets must nest"),
    "bracket through a macro": (BEFORE.format("#define I(x) x\nI([) [noreturn]] void f();"), 2, "brackets must nest"),
    "open bracket in a macro": (BEFORE.format("#define B ["), 1, "[ is not closed"),
    "pragma": (BEFORE.format("#pragma GCC optimize (\"O0\")"), 1, "#pragma"),
    "pragma push": (BEFORE.format("#pragma unroll\n#pragma GCC push_options"), 2, "#pragma"),
    "_Pragma": (BEFORE.format('_Pragma("GCC poison x")'), 1, "_Pragma is reserved"),
    "include of the host": (BEFORE.format('#include "/etc/passwd"'), 1, "#include: expected one of"),
    "include of the library": (BEFORE.format("#include <unistd.h>"), 1, "#include: expected one of"),
    "include by a macro": (BEFORE.format("#define H <unistd.h>\n#include H"), 2, "#include: expected one of"),
    "include, spliced": (BEFORE.format("#inc\\\nlude <unistd.h>"), 1, "#include: expected one of"),
    "include, digraph": (BEFORE.format("%:include <unistd.h>"), 1, "%: is another spelling"),
    "include by a macro that looks like a header": (
        BEFORE.format('#define cuda_fp16 "/etc/passwd"\n#include cuda_fp16.h'), 2, "#include: expected one of"),
    "include of two": (BEFORE.format('#include "cuda_fp16.h" "x"'), 1, "#include: expected one of"),
    "include_next": (BEFORE.format("#include_next <stdio.h>"), 1, "#include_next is not among"),
    "import": (BEFORE.format('#import "/etc/passwd"'), 1, "#import is not among"),
    "embed": (BEFORE.format('#embed "/etc/passwd"'), 1, "#embed is not among"),
    "looking for files": (BEFORE.format("#if __has_include(</etc/shadow>)\n#endif"), 1, "__has_include is reserved"),
    "line": (BEFORE.format('#line 7 "secret.py"'), 1, "#line is not among"),
    "line marker": (BEFORE.format('# 7 "secret.py"'), 1, "#7 is not among"),
    "threadIdx": (BEFORE.format("#define threadIdx blockIdx"), 1, "expected a name of your own"),
    "barrier": (BEFORE.format("#define __syncthreads()"), 1, "expected a name of your own"),
    "asking which compiler reads": (BEFORE.format("#ifdef threadIdx\n#endif"), 1, "#ifdef: expected macros of"),
    "asking for a function": (BEFORE.format("#if 1 && defined(memcpy)\n#endif"), 1, "#if: expected macros of your own"),
    "asking for a keyword of CUDA": (
        BEFORE.format("#if 0\n#elif defined(__shared__)\n#endif"), 2, "#elif: expected macros of your own"),
    "undefine": (BEFORE.format("#undef threadIdx"), 1, "#undef: expected a macro of this source"),
    "keyword": (BEFORE.format("#define float double"), 1, "expected a name of your own"),
    "text after the kernel": (BEFORE.format("#define arguments (forge(), arguments)"), 1, "a name of your own"),
    "expf": (BEFORE.format("#define expf(x) 1.0f"), 1, "expected a name of your own"),
    "builtin": (KERNEL.format("__builtin_trap();"), 1, "__builtin_trap is reserved"),
    "builtin in a macro": (BEFORE.format("#define T __builtin_trap()"), 1, "__builtin_trap is reserved"),
    "checker": (BEFORE.format('extern "C" __device__ void __tsan_write4(void*) {}'), 1, "__tsan_write4 is reserved"),
    "runner": (KERNEL.format("labkit_copy(x, x, 4);"), 1, "labkit_copy is a name of the runner's own"),
    "runner's macro": (BEFORE.format("LABKIT_UNCHECKED void f() {}"), 1, "LABKIT_UNCHECKED is a name of the runner's"),
    "unchecked atomic": (KERNEL.format("atomicExch_unchecked(x, 1.0f);"), 1, "is a name of the runner's own"),
    "main": (BEFORE.format("int main() { return 0; }"), 1, "main: a kernel's source has no program"),
    "libc": (BEFORE.format('extern "C" long syscall(long, ...);'), 1, "extern: expected"),
    "foreign variable": (BEFORE.format("extern char** environ;"), 1, "extern: expected"),
    "copy of libc's": (
        BEFORE.format('extern "C" __device__ void* memmove(void*, const void*, size_t);'), 1, "memmove is the name"),
    "copy of libc's in a namespace": (
        BEFORE.format('namespace q {\nextern "C" __device__ void* memcpy(void*, const void*, size_t); }'), 2,
        "memcpy is the name"),
    "copy of libc's in a block": (
        BEFORE.format('typedef void* F(void*);\nextern "C" { namespace q {\nF memset; } }'), 3, "memset is the name"),
    "copy of libc's behind a body": (
        BEFORE.format('extern "C" { __device__ void f() { if (1) {} }\nvoid* memcpy(void*); }'), 2, "memcpy is the"),
    "copy of libc's, defined": (BEFORE.format('extern "C" __device__ void memset(float*) {}'), 1, "memset is the name"),
    "mathematics that writes": (
        BEFORE.format('extern "C" __device__ double modf(double, double*);'), 1, "modf is the name"),
    "function without a body": (BEFORE.format('extern "C" __device__ int f(int);'), 1, "a function with its body"),
    "functions without a body": (
        BEFORE.format('extern "C" { __global__ void f() {}\nextern "C" {} int g(int); }'), 2, "with its body"),
    "linkage in a macro": (BEFORE.format('#define C extern "C"\nC int f(int);'), 1, "expected no extern"),
    "computed goto": (KERNEL.format("goto *(void*)x;"), 1, "goto: expected a label"),
    "counting printf": (KERNEL.format('printf("%d%n", n, (int*)x);'), 1, "printf: expected a format"),
    "counting printf in parts": (KERNEL.format('printf("%" "hhn", x);'), 1, "printf: expected a format"),
    "counting printf through a macro": (
        BEFORE.format('#define D\n__global__ void f() { printf("%" D "n"); }'), 2, "printf: expected a format"),
    "counting printf, escaped": (KERNEL.format('printf("\\x25n", x);'), 1, "printf: expected a format"),
    "format that cannot be read": (KERNEL.format("char f[4]; printf(f, x);"), 1, "printf: expected a format"),
    "printf by another name": (BEFORE.format("#define P printf"), 1, "printf: expected a format"),
    "pointer to printf": (KERNEL.format("auto p = &printf;"), 1, "printf: expected a format"),
    "raw string": (BEFORE.format('const char* s = R"(x)";'), 1, 'R" is another spelling'),
    "open comment": ("/* never closed", 1, "expected the comment to end"),
    "open string": ('const char* s = "', 1, "expected the string to end"),
    "control character": ("// a\x00b\nint x;", 1, "control character"),
    "carriage return in a comment": ("// a\rasm\nint x;", 1, "control character"),
    "letter of another script": (KERNEL.format("int а = 1;"), 1, "expected C++"),
    "dollar": (KERNEL.format("int a$b = 1;"), 1, "expected C++"),
    "many bytes": ("//" + "x" * MAX_BYTES, 0, f"at most {MAX_BYTES} bytes"),
    "many lines": ("\n" * (MAX_LINES + 1), 0, f"{MAX_LINES} lines"),
    "many tokens": ("+ " * (MAX_TOKENS + 1), 1, f"at most {MAX_TOKENS} tokens"),
    "lone surrogate": ("// \ud800\n", 1, "control character"),
}  # fmt: skip

ADMITTED = {
    "comments": "// asm #include __attribute__ über\n/* goto *p; ## */ int x;",
    "strings": 'const char* s = "asm(\\"nop\\") #include <x> [[a]]";',
    "pragma unroll": KERNEL.format("\n#pragma unroll\nfor (;;) {}\n#pragma unroll 4\nfor (;;) {}\n"),
    "macros": "#define TILE 32\n#define SQUARE(a) ((a) * (a))\n#undef TILE\n#ifdef TILE\n#endif",
    "conditions": "#ifndef TILE\n#define TILE 32\n#endif\n#if TILE > 16 && defined(__CUDA_ARCH__) && !0\n#endif",
    "macro over two lines": "#define SUM(a, b) \\\n    ((a) + (b))",
    "separators": "int x = 1'000'000; float y = 0x1.8p-3f, z = .5f, w = 1e-3f;",
    "global name": "template <class T> struct S {}; S<::S<int>> s;",
    "printf": KERNEL.format('printf("%d of %5.2f, %% and %s\\n", n, x[0], "name");'),
    "dynamic shared memory": KERNEL.format("extern __shared__ __align__(16) float tile[]; tile[0] = n;"),
    "block of extern": 'extern "C" { __global__ void k(float* x) { x[0] = 1; } }',
    "kernel that is declared first": 'extern "C" { __global__ void k(float* exp, int round); int t[2] = {1, 2}; }',
    "function with a body": 'extern "C" __device__ float f(float log) { return expf(log); }',
    "headers in quotes": '#include "cuda_fp16.h"',
    "attribute of C++": KERNEL.format("[[maybe_unused]] int a = n;"),
    "lambda": KERNEL.format("auto f = [&](int i) { return i; }; x[f(0)] = 1;"),
    "headers": "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n__half h; __nv_bfloat16 b;",
    "address of a logical and": KERNEL.format("if (n && x) x[0] = 1;"),
}


# Right on a GPU, but its macros hide what stands behind `extern "C"` and what the text after a kernel means.
HIDES_ITS_NAMES = {"names_and_macros.cu"}


@pytest.mark.parametrize(("source", "line", "rule"), REFUSED.values(), ids=REFUSED)
def test_source_is_refused(source, line, rule):
    with pytest.raises(Refused) as refused:
        admit(source)
    assert rule in refused.value.rule
    assert refused.value.line == line


@pytest.mark.parametrize("source", ADMITTED.values(), ids=ADMITTED)
def test_source_is_admitted(source):
    admit(source)


@pytest.mark.parametrize("name", ["QUANTISE_PACK", "DEQUANTISE", "DECODE_ATTENTION"])
def test_references_are_admitted(name):
    admit(getattr(kernels, name))
    assert name in dir(kernels) or name in dir(fp4kv)


def test_correct_kernels_of_the_corpus_are_admitted(project):
    sources = sorted((project / "tests/labkit/cuda/corpus/correct").glob("*.cu"))
    assert len(sources) >= 40
    refused = []
    for path in sources:
        try:
            admit(path.read_text(encoding="utf-8"))
        except Refused:
            refused.append(path.name)
    assert set(refused) <= HIDES_ITS_NAMES


def test_every_function_that_labkit_declares_is_known(project):
    """A new intrinsic of labkit's must be entered here too, or a correct kernel would be refused."""
    text = "\n".join(path.read_text() for path in (project / "labs/labkit/src/labkit/cuda/device").glob("*.h"))
    declared = set(re.findall(r"\b[A-Za-z]\w* \*?(__[a-z]\w*)\(", text)) | set(
        re.findall(r"#define (__[a-z]\w*__)\b", text)
    )
    private = {"__attribute__"} | {name for name in declared if name.startswith("__builtin")}
    assert len(declared) > 60
    assert not {name for name in declared - private if not names.is_allowed(name)}


def test_the_skeleton_is_not_attempted_and_no_refusal():
    with pytest.raises(NotAttempted) as found:
        admit(KERNEL.format('\n    #error "not attempted: write the loop of quantise_pack"\n'))
    assert (found.value.task, found.value.line) == ("quantise_pack", 2)


def test_lines_are_counted_through_splices_and_comments():
    source = "int a; /* 1\n2 */ int b; \\\n int c;\n// x \\\n y\nint d;"
    found = {token.text: token.line for line in lines_of(source) for token in line if token.kind == "name"}
    assert {name: found[name] for name in "abcd"} == {"a": 1, "b": 2, "c": 3, "d": 6}
