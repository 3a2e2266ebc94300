"""What is left to a kernel that reaches the C library all the same; a report is text whatever it quotes."""

from pathlib import Path

import numpy as np
import pytest
from labkit import cuda
from labkit.cuda import nvrtc

NOT_PERMITTED = -1


@pytest.fixture(autouse=True)
def without_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVIDIA's compiler knows none of these functions: let g++ alone compile."""
    monkeypatch.setattr(nvrtc, "_library", lambda: None)


def results_of(declarations: str, calls: list[str]) -> list[int]:
    """Run the calls, which a kernel has no business to make, and return what each gives."""
    lines = "".join(f"y[{i}] = (long long)({call});" for i, call in enumerate(calls))
    code = f'extern "C" {{ {declarations} }}\nextern "C" __global__ void escape(long long* y, int n) {{ {lines} }}'
    y = np.zeros(len(calls), np.int64)
    cuda.RawKernel(code, "escape")((1,), (1,), (y, len(calls)))
    return y.tolist()


def test_files_processes_and_sockets_are_out_of_reach(tmp_path: Path) -> None:
    declarations = """int open(const char*, int, ...); int fork(); int socket(int, int, int); int kill(int, int);
        int execv(const char*, char* const*); int unlink(const char*); int prctl(int, ...);"""
    victim = tmp_path / "victim"
    victim.touch()
    calls = [
        f'open("{victim}", 0)', f'open("{tmp_path}/new", 0101, 0600)', "fork()", "socket(2, 1, 0)", "kill(1, 0)",
        'execv("/bin/true", 0)', f'unlink("{victim}")', "prctl(4, 1, 0, 0, 0)",
    ]  # fmt: skip
    assert results_of(declarations, calls) == [NOT_PERMITTED] * len(calls)
    assert [path.name for path in tmp_path.iterdir()] == ["victim"]


def test_memory_may_grow_but_holds_no_new_code() -> None:
    declarations = """void* mmap(void*, size_t, int, int, int, long); int mprotect(void*, size_t, int);
        void* valloc(size_t);"""
    plain, executable, from_file, made_executable = results_of(
        declarations,
        [
            "mmap(0, 4096, 3, 0x22, -1, 0)",
            "mmap(0, 4096, 7, 0x22, -1, 0)",
            "mmap(0, 4096, 1, 2, 0, 0)",
            "mprotect(valloc(4096), 4096, 7)",
        ],
    )
    assert plain > 0
    assert [executable, from_file, made_executable] == [NOT_PERMITTED] * 3


def test_only_the_output_and_the_report_are_written_to() -> None:
    declarations = """long write(int, const void*, size_t); int dup2(int, int);
        int count_writable() { int n = 0; for (int i = 0; i < 32; ++i) n += write(i, 0, 0) == 0; return n; }"""
    assert results_of(declarations, ["count_writable()", "dup2(1, 9)"]) == [3, NOT_PERMITTED]


@pytest.mark.parametrize(
    ("quoted", "shown"),
    [
        ('"Größe" && 0', '"Größe" && 0'),
        (r'"€ 𝄞" && 0', '"€ 𝄞" && 0'),
        (r'"tab\t" && 0', r'"tab\t" && 0'),
    ],
)
def test_a_condition_is_quoted_as_it_is_written(quoted: str, shown: str) -> None:
    code = f'extern "C" __global__ void claim() {{ assert({quoted}); }}'
    with pytest.raises(cuda.KernelError) as caught:
        cuda.RawKernel(code, "claim")((1,), (1,), ())
    assert f"finds assert({shown}) false" in str(caught.value)


def test_bytes_that_are_no_text_do_not_spoil_the_report() -> None:
    code = """extern "C" __global__ void claim()
    { labkit_assertion("a\\xff\\xc3(\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80 b\\xe2\\x82", 2); }"""
    with pytest.raises(cuda.KernelError) as caught:
        cuda.RawKernel(code, "claim")((1,), (1,), ())
    assert "finds assert(a\ufffd\ufffd(" in str(caught.value) and "\ufffd b\ufffd\ufffd) false" in str(caught.value)
