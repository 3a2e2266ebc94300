"""Kernels that attack: each meets the wall that is there for it, and leaves nothing behind.

Three walls stand in a row: the gate on the source, the look at the compiled library, the sandbox. An attack on an inner
wall is made with the outer ones taken away, as if they had been passed.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autograder.errors import SandboxError
from autograder.judging.kernel import Kernel
from autograder.limits import Limits, MiB
from autograder.native import runs
from autograder.native.faults import NativeFault
from autograder.native.runs import Native, NativeRun

pytestmark = pytest.mark.sandbox

N = 64
LIMITS = Limits(memory_bytes=1024 * MiB, disk_bytes=32 * MiB, file_bytes=16 * MiB, files=500, processes=64)
SECONDS = 1.5
KERNEL = """{before}
extern "C" __global__ void twice(const float* x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
"""
RIGHT = "if (i < n) y[i] = 2.0f * x[i];"
WRONG = "if (i < n) y[i] = 3.0f * x[i];"
X = np.arange(N, dtype=np.float32)


def kernel(body: str, before: str = "") -> str:
    return KERNEL.format(body=body, before=before)


@pytest.fixture
def native(prefix, nothing_left, monkeypatch) -> Native:
    """What runs a kernel, with limits that attacks meet soon."""
    monkeypatch.setattr(runs, "START_SECONDS", 5.0)
    return Native(prefix, LIMITS, "bubblewrap", lambda: 120.0, SECONDS)


@pytest.fixture
def ungated(native, monkeypatch) -> Native:
    """The same behind an open gate, and with every library admitted: the sandbox alone is left."""
    monkeypatch.setattr(runs, "admit", lambda source: None)
    monkeypatch.setattr(runs, "admit_library", lambda data, checked: None)
    return native


def attempt(native: Native, source: str, **options: bool) -> NativeRun:
    y = np.full(N, -1.0, np.float32)
    (run,) = native.run(source, ("twice", (1,), (N,), (X, y, np.int32(N))), **options)
    return replace(run, _given=(X, y))


def outcome(native: Native, source: str, **options: bool) -> tuple[str, str]:
    """Return the status that the attack earns, and all that a student would read of it."""
    try:
        run = attempt(native, source, **options)
    except NativeFault as fault:
        return fault.status, "\n".join(fault.revealed)
    return ("right" if np.array_equal(run._after[1], 2 * X) else "wrong"), ""


def written(native: Native, source: str, **options: bool) -> np.ndarray:
    return attempt(native, source, **options)._after[1]


def test_a_right_kernel_is_right_checked_and_unchecked(native):
    assert outcome(native, kernel(RIGHT)) == ("right", "")
    assert outcome(native, kernel(RIGHT), checked=False) == ("right", "")


IN_A_NOTEBOOK = """
from labkit.cuda import build
runner = build.runner()
try:
    runner.open("ab")
except OSError as error:
    print(runner, "is not written to:", type(error).__name__)
"""


def test_a_notebook_finds_the_runner_ready_and_cannot_change_it(prefix, nothing_left):
    kernel = Kernel({}, LIMITS, prefix)
    try:
        _, outputs = kernel.run(IN_A_NOTEBOOK, 10)
    finally:
        kernel.end()
    said = "".join(output.get("text", "") for output in outputs)
    assert said.startswith(str(prefix / "share" / "labkit" / "runner-"))
    assert "is not written to" in said


def test_an_honest_fault_is_named_by_kind_and_line(native):
    with pytest.raises(NativeFault) as fault:
        attempt(native, kernel("y[i + 1] = x[i];"))
    assert fault.value.hidden == ["got      an access beyond the end of an array", "line 4   y[i + 1] = x[i];"]
    assert "y[64], but y has 64 elements" in "\n".join(fault.value.revealed)


C = 'extern "C" {{ {0} }}'
AT_THE_GATE = {
    "assembler": kernel('asm volatile("syscall");' + RIGHT),
    "file of the host": kernel(RIGHT, '#include "/etc/passwd"'),
    "constructor": kernel(RIGHT, "__attribute__((constructor)) void before() {}"),
    "unchecked function": kernel(RIGHT, "__attribute__((no_sanitize_thread)) void f() {}"),
    "pasted name": kernel("P(labkit_, trap)(1);", "#define P(a, b) a##b"),
    "redefined barrier": kernel(RIGHT, "#define __syncthreads()"),
    "redefined threadIdx": kernel(RIGHT, "#define threadIdx make_uint3(0, 0, 0)"),
    "another file's lines": kernel(RIGHT, '#line 1 "check.py"'),
    "the environment": kernel(RIGHT, C.format("extern char** environ;")),
    "the C library": kernel(RIGHT, C.format("void* memmove(void*, const void*, size_t);")),
    "a function called memset": kernel("memset(y);", C.format("__device__ void memset(float* x) { *x = 1; }")),
    "code in what looks like a header": kernel(RIGHT, '#define cuda_fp16 "/etc/passwd"\n#include cuda_fp16.h'),
    "the checker's function": kernel(RIGHT, 'extern "C" __device__ void __tsan_write4(void*) {}'),
}


@pytest.mark.parametrize("source", AT_THE_GATE.values(), ids=AT_THE_GATE)
def test_the_gate_refuses_before_anything_is_compiled(native, monkeypatch, source):
    monkeypatch.setattr(runs, "ask", lambda *_: pytest.fail("a sandbox was opened"))
    status, text = outcome(native, source)
    assert status == "failed" and text.startswith("refused")


# A structure of sixteen numbers, which a function takes by value, and an element of x as one.
FUNCTIONS = """struct P { float all[16]; };
__device__ float first(P p) { return p.all[0]; }
__device__ float last(P p) { return p.all[15]; }"""
STRUCTURE = "*(const P*)(x + i / 16 * 16)"

AT_THE_LIBRARY = {
    "system call by name": (kernel("syscall(1, 1, x, 4);" + RIGHT, C.format("long syscall(long, ...);")), "syscall"),
    "end of the process": (kernel("_exit(0);", C.format("void _exit(int);")), "_exit"),
    "command": (kernel('system("id");', C.format("int system(const char*);")), "system"),
    "loading": (kernel("dlsym(0, 0);", C.format("void* dlsym(void*, const char*);")), "dlsym"),
    "memory of the process": (
        kernel("mmap(0, 64, 7, 34, -1, 0);", C.format("void* mmap(void*, size_t, int, int, int, long);")),
        "mmap",
    ),
    "code before the kernel": (
        kernel(RIGHT, "__device__ float seed = 1.0f;\n__device__ float early = expf(seed);"),
        "computed before the kernel starts",
    ),
    "static that is computed": (
        kernel("static float s = expf(x[0]); y[i] = s;"),
        "not a function that a graded kernel",
    ),
    "a kernel called expf": (
        'extern "C" __global__ void expf(const float* x, float* y, int n) {}' + kernel(RIGHT),
        "expf",
    ),
    "the C library's copy": (
        kernel("memmove(y, x, 4);", C.format("void* memmove(void*, const void*, size_t);")),
        "memmove",
    ),
    "the C library's copy in a namespace": (
        kernel("q::memcpy(y, x, n * 4);", f"namespace q {{ {C.format('void* memcpy(void*, const void*, size_t);')} }}"),
        "memcpy",
    ),
    "mathematics that writes": (
        kernel("y[0] = q::frexpf(x[1], (int*)y);", f"namespace q {{ {C.format('float frexpf(float, int*);')} }}"),
        "frexpf",
    ),
    "mathematics that writes twice": (
        kernel("q::sincosf(x[1], y, y);", f"namespace q {{ {C.format('void sincosf(float, float*, float*);')} }}"),
        "sincosf",
    ),
    "a thread's own variable": (kernel("static thread_local int t; t += i; y[i] = t;"), "TLS"),
    "reads behind a pointer to a function": (
        kernel(f"float (*f)(P) = n ? first : last; y[i] = f({STRUCTURE});", FUNCTIONS),
        "call through a pointer",
    ),
    "reads behind a variable that points to a function": (
        kernel(f"y[i] = f({STRUCTURE});", f"{FUNCTIONS} __device__ float (*volatile f)(P) = first;"),
        "call through a pointer",
    ),
    "reads behind a virtual function": (
        kernel(
            f"Q q; R r; (n ? &q : (Q*)&r)->f({STRUCTURE});",
            f"{FUNCTIONS} struct Q {{ virtual __device__ void f(P) {{}} }};\n"
            "struct R : Q { __device__ void f(P) override {} };",
        ),
        "virtual function",
    ),
    "reads behind a function that calls itself": (
        kernel(
            "y[i] = f((const P*)x, n);",
            f"{FUNCTIONS} __device__ float f(const P* p, int n, P q = {{}})\n"
            "{ return n ? f(p, n - 1, p[n]) : q.all[0]; }",
        ),
        "takes a structure and calls itself",
    ),
    "the runner's environment": (kernel("y[i] = !environ;", C.format("extern char** environ;")), "environ"),
}


@pytest.mark.parametrize(("source", "word"), AT_THE_LIBRARY.values(), ids=AT_THE_LIBRARY)
def test_the_library_is_refused_before_it_is_loaded(native, monkeypatch, source, word):
    monkeypatch.setattr(runs, "admit", lambda source: None)
    ask = runs.ask
    monkeypatch.setattr(
        runs, "ask", lambda asked, *rest: ask(asked, *rest) if asked["op"] == "compile" else pytest.fail("it was run")
    )
    status, text = outcome(native, source)
    assert status == "failed"
    assert word in text


def test_what_the_gate_reads_as_a_comment_is_not_compiled(native):
    """A declaration of dynamic shared memory is rewritten for the CPU, and must not lose where a comment begins."""
    hidden = "static_assert(sizeof(int) == 8);"
    before = f"extern __align__(16 /* ) __shared__ float a[]; {hidden}\n // */ ) __shared__ float b[];"
    status, text = outcome(native, kernel(RIGHT, before))
    assert status == "failed"
    assert "assertion failed" not in text


NOT_FOR_KERNELS = {
    "a constructor of a global": kernel(RIGHT, "struct S { int v; S() { v = clock(); } }; __device__ S s;"),
    "a static object": kernel("struct S { int v; S(int a) : v(a) {} }; static S s(n); y[i] = s.v;"),
    "an exception": kernel("try { throw 1; } catch (int) { y[i] = 2 * x[i]; }"),
    "a coroutine": kernel("co_return;"),
    "a type's name": kernel("y[i] = typeid(int).name()[0];"),
    "an operator new": kernel(RIGHT, "void* operator new(size_t);"),
    "a module": kernel(RIGHT, "import std;"),
    "a vector of GCC's": kernel(RIGHT, "typedef float V __attribute__((vector_size(64)));"),
    "a variable aligned to 256 MiB": kernel(RIGHT, "alignas(1ull << 28) __device__ float big[4];"),
    "its own code written": kernel("*(unsigned char*)(void*)&f = 0xc3; " + RIGHT, "__device__ void f() {}"),
    "data that is run": kernel("unsigned char c[] = {0xc3}; ((void (*)())c)(); " + RIGHT),
}


@pytest.mark.parametrize("source", NOT_FOR_KERNELS.values(), ids=NOT_FOR_KERNELS)
def test_what_only_a_program_needs_fails(native, source):
    assert outcome(native, source)[0] == "failed"


def test_functions_called_like_system_calls_stand_in_for_none(native):
    """The library's own names stay its own: the runner's calls go where they always went."""
    calls = ("write", "read", "munmap", "mprotect", "sigaction", "swapcontext", "_exit", "abort")
    before = "".join(f'extern "C" __device__ long {name}(...) {{ for (;;); }}\n' for name in calls)
    assert outcome(native, kernel(RIGHT, before)) == ("right", "")


def test_structures_by_value_and_functions_that_call_themselves_are_no_offence(native):
    before = f"{FUNCTIONS} __device__ int sum(int n) {{ return n < 1 ? 0 : n + sum(n - 1); }}"
    body = f"const float two = sum(n) / {N * (N + 1) // 4}; if (i < n) y[i] = two * x[i] + first({STRUCTURE}) * 0;"
    status, text = outcome(native, kernel(body, before))
    assert (status, text) == ("right", "")


def test_a_constructor_is_seen_in_the_library_too(native, monkeypatch):
    monkeypatch.setattr(runs, "admit", lambda source: None)
    for attribute in ("constructor", "destructor"):
        before = f"static volatile int ran; __attribute__(({attribute})) static void f() {{ ran = 1; }}"
        status, text = outcome(native, kernel(RIGHT, before))
        assert (status, text.partition(" ")[0]) == ("failed", "refused")


def test_an_indirect_function_is_seen_in_the_library(native, monkeypatch):
    monkeypatch.setattr(runs, "admit", lambda source: None)
    before = 'extern "C" { static void* pick() { return 0; } void f() __attribute__((ifunc("pick"))); }'
    assert outcome(native, kernel("f();" + RIGHT, before))[0] == "failed"


LIBC = """
extern "C" {
long syscall(long, ...);
long ptrace(int, ...);
long read(int, void*, size_t);
long write(int, const void*, size_t);
long lseek(int, long, int);
int open(const char*, int, ...);
int fork();
int getppid();
int kill(int, int);
int socket(int, int, int);
int connect(int, const void*, unsigned);
int snprintf(char*, size_t, const char*, ...);
unsigned sleep(unsigned);
void* calloc(size_t, size_t);
void _exit(int);
}
"""
HOG = """for (;;) {
    char* p = (char*)calloc(1 << 24, 1);
    if (!p) _exit(1);
    for (int k = 0; k < 1 << 24; k += 4096) p[k] = 1;
}"""
ONCE = "if (i == 0) {{ {0} }}"

SURVIVED: dict[str, tuple[str, set[str]]] = {
    "end of the runner": ("_exit(0);", {"crashed"}),
    "killing the driver": ("kill(getppid(), 9);", {"wrong", "crashed"}),  # refused where the runner can filter calls
    "killing everything": ("kill(-1, 9);", {"wrong", "crashed"}),
    "sleeping": ("for (;;) sleep(1000);", {"timed_out"}),
    "endless loop": ("for (volatile int k = 0;; k = k + 1) {}", {"timed_out"}),
    "printing without end": ('for (;;) printf("%d\\n", n);', {"timed_out"}),
    "forking": ("for (;;) fork();", {"timed_out", "crashed", "out_of_memory"}),
    "children that outlive": ("if (fork() == 0) for (;;) sleep(1000); _exit(0);", {"crashed", "timed_out"}),
    "memory": (HOG, {"out_of_memory", "crashed"}),
    "disk": (
        'int f = open("/tmp/f", 66, 0600); for (;;) if (write(f, x, 256) <= 0) _exit(1);',
        {"crashed", "timed_out"},
    ),
    "flood of output": ("for (;;) write(1, x, 256);", {"timed_out", "out_of_memory", "crashed"}),
}  # fmt: skip


@pytest.mark.parametrize(("body", "statuses"), SURVIVED.values(), ids=SURVIVED)
def test_what_runs_in_the_sandbox_ends_with_it(ungated, body, statuses):
    status, _ = outcome(ungated, kernel(ONCE.format(body), LIBC), checked=False)
    assert status in statuses


FORGERIES = {
    "report in every descriptor": r"""
        const char said[] = "{\"status\": \"ok\", \"faults\": [], \"traffic\": []}";
        for (int f = 0; f < 64; ++f) { lseek(f, 0, 0); write(f, said, sizeof said - 1); } _exit(0);""",
    "answer in the judge's pipe": r"""
        char name[64]; char said[] = "AV01 forged";
        for (int f = 0; f < 64; ++f) {
            snprintf(name, 64, "/proc/%d/fd/%d", getppid(), f);
            write(open(name, 1), said, 11);
        }
        _exit(0);""",
}


@pytest.mark.parametrize("body", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_report_makes_no_value_right(ungated, body):
    status, _ = outcome(ungated, kernel(ONCE.format(body) + WRONG, LIBC), checked=False)
    assert status in {"crashed", "wrong"}


LOOKS = {
    "a file of the host": 'open("/etc/passwd", 0)',
    "the judge's own files": f'open("{Path(runs.__file__).parents[1]}/judging/judge.py", 0)',
    "the checks": f'open("{Path(__file__).parents[3]}/solutions", 0)',
    "a home": 'open("/root/.ssh", 0)',
    "the driver's memory": 'open(driver("mem"), 2)',
    "the driver's descriptors": 'open(driver("fd"), 0)',
    "the driver's variables": 'open(driver("environ"), 0)',
    "a traced driver": "(int)ptrace(16, getppid(), 0, 0)",
    "write to the environment": 'open("/usr/lib/x", 65, 0600)',
    "write to our code": 'open("/judge/autograder_inside/native.py", 2)',
    "a network": "connect_out()",
    "a file in memory": '(int)syscall(319, "x", 0)',
}
HELPERS = r"""
static const char* driver(const char* file) {
    static char name[64]; snprintf(name, 64, "/proc/%d/%s", getppid(), file); return name;
}
static int connect_out() {
    static const unsigned char address[16] = {2, 0, 0, 80, 192, 0, 2, 1};
    int s = socket(2, 1, 0); return s < 0 ? -1 : connect(s, address, 16);
}
"""


def test_nothing_of_the_host_and_nothing_of_the_driver_can_be_reached(ungated):
    """All in one kernel: each attempt writes what the system said, -1 for no."""
    lines = "".join(f"y[{number}] = (float)({call});" for number, call in enumerate(LOOKS.values()))
    y = written(ungated, kernel(ONCE.format(lines), LIBC + HELPERS), checked=False)
    assert dict(zip(LOOKS, y.tolist(), strict=False)) == dict.fromkeys(LOOKS, -1.0)


def test_a_wild_pointer_does_not_reach_the_checkers_tables(native):
    """Writes at ever larger distances from a thread's own stack: the first that leaves it ends the run."""
    body = """unsigned long here = (unsigned long)&i & ~7ul;
        for (long far = 1 << 16; far < 1l << 40; far <<= 1) *(int*)(here + far) = *(int*)(here - far) = 0;"""
    status, text = outcome(native, kernel(ONCE.format(body) + RIGHT))
    assert status == "failed"
    assert "bad_pointer" in text or "out_of_bounds" in text


LOOP = "constexpr long f(long n) { long s = 0; for (long k = 0; k < n; ++k) s += k; return s; }"
BOMBS = {
    "templates without end": kernel(
        RIGHT, "template <int N> struct T { enum { v = T<N + 1>::v + T<N + 2>::v }; };\nint t = T<0>::v;"
    ),
    "a huge array": kernel(RIGHT, "__device__ char big[1ull << 33] = {1};"),
    "macros that double": kernel(
        RIGHT, "#define A0 1+\n" + "".join(f"#define A{n + 1} A{n} A{n}\n" for n in range(40)) + "int b = A40 1;"
    ),
    "a constant computed for long": kernel(RIGHT, f"{LOOP}\nconstexpr long c = f(1l << 60);"),
}


@pytest.mark.parametrize("source", BOMBS.values(), ids=BOMBS)
def test_a_bomb_for_the_compiler_costs_its_student_alone(native, monkeypatch, source):
    monkeypatch.setattr(runs, "COMPILE_SECONDS", 12.0)
    assert outcome(native, source)[0] in {"failed", "timed_out", "out_of_memory"}


def test_words_of_the_compiler_that_are_no_text_are_the_students(native):
    status, text = outcome(native, kernel(RIGHT, 'static_assert(sizeof(int) == 8, "\\xff\\xfe\\x80 bad");'))
    assert status == "failed"
    assert "bad" in text


def test_no_compiler_is_no_verdict(native, monkeypatch):
    """A machine without g++ is the machine's failure: nothing is known about the submission."""
    error = {"error": {"kind": "missing_tool", "line": None, "text": "C++ compiler: expected g++, got none"}}
    monkeypatch.setattr(runs, "ask", lambda *_: error)
    with pytest.raises(SandboxError, match="expected g\\+\\+, got none"):
        attempt(native, kernel(RIGHT))


def test_no_bubblewrap_is_no_verdict(native, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SandboxError, match="bwrap"):
        attempt(native, kernel(RIGHT))


def test_time_that_is_used_up_is_not_run(native):
    spent = replace(native, seconds_left=lambda: 0.0)
    assert outcome(spent, kernel(RIGHT))[0] == "not_run"
