"""What a compiled kernel may be: correct ones pass, and no file of bytes does more than be refused."""

import re
import subprocess

import pytest
from labkit.cuda import build

from autograder.inside import native
from autograder.native.library import admit_library
from autograder.native.names import is_of_the_runtime
from autograder.native.tokens import Refused

SOURCE = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = expf(1.0f + x[0]); }'


@pytest.fixture(scope="module")
def library() -> bytes:
    return build.compile_kernels(SOURCE, (), (), checked=True).library.read_bytes()


@pytest.mark.slow
def test_correct_kernels_of_the_corpus_are_admitted(project):
    sources = sorted((project / "tests/labkit/cuda/corpus/correct").glob("*.cu"))
    assert len(sources) >= 40
    for path in sources:
        code = path.read_text(encoding="utf-8")
        options = tuple(word for line in re.findall(r"^// options: (.*)$", code, re.M) for word in line.split())
        for checked in (True, False):
            compiled = build.compile_kernels(code, options, (), checked)
            admit_library(compiled.library.read_bytes(), checked)


def test_the_checkers_own_start_is_no_initialiser_of_an_unchecked_kernel(library):
    admit_library(library, checked=True)
    with pytest.raises(Refused, match="computed before the kernel starts"):
        admit_library(library, checked=False)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF" + bytes(60), b"x" * 100, bytes(1 << 16)])
def test_what_is_no_library_is_refused(data):
    with pytest.raises(Refused):
        admit_library(data, checked=True)


def test_a_damaged_library_is_refused_or_harmless(library):
    """Each byte of the headers changed in turn: nothing but a refusal comes out of the reader."""
    refused = 0
    for place in [*range(64), *range(len(library) - 26 * 64, len(library), 7)]:
        damaged = bytearray(library)
        damaged[place] ^= 0xFF
        try:
            admit_library(bytes(damaged), checked=True)
        except Refused:
            refused += 1
    assert refused > 60


def test_a_huge_library_is_refused():
    with pytest.raises(Refused, match="at most 16 MiB, got 17"):
        admit_library(bytes(17 << 20), checked=True)


def test_a_program_of_the_machine_is_refused(tmp_path):
    """The C library's start and end, the loader's requests: all that a kernel does not have."""
    (tmp_path / "x.c").write_text('#include <stdio.h>\nvoid k(void) { puts("x"); }')
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "x.so", tmp_path / "x.c"], check=True)
    with pytest.raises(Refused):
        admit_library((tmp_path / "x.so").read_bytes(), checked=True)


def test_every_function_that_the_runner_offers_is_known(project):
    folder = project / "labs/labkit/src/labkit/cuda"
    declared = set(re.findall(r"\b(labkit_\w+)\(", (folder / "device/runtime.h").read_text()))
    assert len(declared) > 10
    assert not {name for name in declared if not is_of_the_runtime(name)}


CALLS = {
    "    10b5:\tcall   *%r12": "",
    "    10b5:\tcall   *0x2fe2(%rip)        # 3fe0 <f>": "",
    "    10c9:\tcall   1020 <__tsan_write4@plt>": "__tsan_write4@plt",
    "    10c9:\tcall   1010 <float f<P>(P)>": "float f<P>(P)",
    " 7d0:\tblr\tx1": "",
    " 7d4:\tbl\t6b0 <labkit_barrier@plt>": "labkit_barrier@plt",
}


@pytest.mark.parametrize(("line", "target"), CALLS.items())
def test_calls_are_read_off_a_listing(line, target):
    found = native.CALL.search(line)
    assert found is not None
    assert (found["target"] or "") == target


@pytest.mark.parametrize("line", ["  10ba:\tjmp    1100 <k+0x20>", " 7d8:\tb\t7d0 <k+0x10>", "0000000000001050 <k>:"])
def test_jumps_are_no_calls(line):
    assert native.CALL.search(line) is None


MAY_TAKE_STRUCTURES = {
    "expf@plt": False,
    "labkit_to_int(float)": False,
    "float labkit_least<float>(P)": False,
    "atomicAdd_unchecked(float*, float)": False,
    "sum(int)": False,
    "sum(unsigned long long, float const*, P&)": False,
    "f(int) [clone .constprop.0]": False,
    "f()": False,
    "f(P)": True,
    "f(int, P, int)": True,
    "float f<P>(P)": True,
    "f(A<int, B>)": True,
    "f(P) [clone .constprop.0]": True,
    "twice": True,
    "": True,
}


@pytest.mark.parametrize(("function", "takes"), MAY_TAKE_STRUCTURES.items())
def test_functions_that_may_take_structures_are_told_by_their_names(function, takes):
    assert native._takes_structures(function) == takes
