"""Compilers and the cache: what is said when one is missing, what is kept, and that several processes may fill it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from labkit import cache, cuda
from labkit.cuda import build, gpu, nvrtc

CODE = """extern "C" __global__ void one(int* x) { x[threadIdx.x] = 1; }"""


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache but for the runner, which takes seconds to compile and is the same for all."""
    runner = build.runner()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    shutil.copy2(runner, cache.folder())
    return tmp_path / "cache"


@pytest.fixture
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Forget before and after which compiler was found."""
    build.compiler.cache_clear()
    yield
    build.compiler.cache_clear()


def launch_one() -> None:
    x = np.zeros(4, np.int32)
    cuda.RawKernel(CODE, "one")((1,), (4,), (x,))
    assert x.tolist() == [1] * 4


def test_a_kernel_is_compiled_once(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launch_one()
    monkeypatch.setattr(build, "_run", lambda command: pytest.fail(f"compiled again: {command}"))
    monkeypatch.setattr(nvrtc, "judge", lambda *_: pytest.fail("asked NVRTC again"))
    launch_one()


def test_another_option_is_another_kernel(fresh_cache: Path) -> None:
    code = """extern "C" __global__ void n(int* x) { x[0] = N; }"""
    x = np.zeros(1, np.int32)
    for n in (3, 4):
        cuda.RawKernel(code, "n", (f"-DN={n}",))((1,), (1,), (x,))
        assert x[0] == n


def test_the_cache_is_this_users_alone(fresh_cache: Path) -> None:
    assert cache.folder() == fresh_cache
    assert fresh_cache.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_write_to_is_refused(no_cache: Path) -> None:
    no_cache.mkdir()
    no_cache.chmod(0o777)
    assert cache.folder() != no_cache
    assert cache.folder().stat().st_mode & 0o077 == 0


def test_a_link_is_refused(no_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    no_cache.symlink_to(tmp_path / "elsewhere")
    assert cache.folder() != no_cache


def test_what_fails_to_be_made_leaves_nothing(no_cache: Path) -> None:
    def fail(made: Path) -> None:
        made.write_text("half")
        raise KeyboardInterrupt

    folder = cache.folder()
    with pytest.raises(KeyboardInterrupt):
        cache.keep(folder / "thing", fail)
    assert list(folder.iterdir()) == []


def test_processes_may_fill_an_empty_cache_together(fresh_cache: Path) -> None:
    script = (
        "import numpy as np\nfrom labkit import cuda\nx = np.zeros(4, np.int32)\n"
        f"cuda.RawKernel({CODE!r}, 'one')((1,), (4,), (x,))\nprint(x.sum())"
    )
    children = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [child.communicate()[0].strip() for child in children] == ["4"] * 3
    assert not list(fresh_cache.glob(".making-*"))


def test_a_missing_compiler_is_named_with_the_command(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch, forgetful: None
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(cuda.MissingToolError) as caught:
        launch_one()
    assert str(caught.value) == "C++ compiler: expected g++, got none on the search path.\n  sudo apt-get install g++"


def test_another_compiler_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgetful: None) -> None:
    other = tmp_path / "clang++"
    other.write_text("#!/bin/sh\necho clang version 19.1\n")
    other.chmod(0o755)
    monkeypatch.setenv(build.COMPILER_VARIABLE, str(other))
    with pytest.raises(cuda.MissingToolError, match=r"expected GCC, got 'clang version 19\.1'"):
        build.compiler()


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "riscv64")])
def test_other_machines_are_told_what_works(system: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(build.platform, "machine", lambda: machine)
    with pytest.raises(cuda.MissingToolError, match="container"):
        cuda.RawKernel(CODE, "one")


def test_without_nvrtc_g_plus_plus_alone_compiles(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_library", lambda: None)
    launch_one()
    with pytest.raises(cuda.CompileError, match=r"g\+\+ does not accept") as caught:
        cuda.RawKernel('extern "C" __global__ void one(int* x)\n{\n    x[0] = y;\n}', "one")
    assert caught.value.line == 3
    assert f"{build.INSTALL_NVRTC}" in cuda.what_runs_here()


@pytest.mark.skipif(not nvrtc.is_installed(), reason="NVRTC is not installed: pip install 'labkit[kernels]'")
@pytest.mark.parametrize("name", ["INFINITY", "(float)(uint8_t)300", "std::sqrt(2.0f)"])
def test_nvrtc_goes_first(name: str, fresh_cache: Path) -> None:
    code = f'extern "C" __global__ void one(float* x)\n{{\n    x[0] = {name};\n}}'
    with pytest.raises(cuda.CompileError, match="NVRTC does not accept the source") as caught:
        cuda.RawKernel(code, "one")
    assert caught.value.line == 3


def test_a_compiler_that_quotes_bytes_is_quoted(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_library", lambda: None)
    code = 'static_assert(sizeof(int) == 8, "\\xff\\xfe\\x80 bad");\nextern "C" __global__ void one(int* x) {}'
    with pytest.raises(cuda.CompileError, match=r"bad") as caught:
        cuda.RawKernel(code, "one")
    assert caught.value.line == 1


def test_what_runs_here_is_one_sentence() -> None:
    said = cuda.what_runs_here()
    assert said.endswith(".") and said.count(". ") == 0
    assert said.startswith("Kernels run on the GPU" if gpu.cupy_module() else "Kernels run on the CPU")


def test_cupy_without_a_gpu_is_said(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text("def asnumpy(x): return x\ndef ones(n): raise RuntimeError('no driver')\n")
    script = "from labkit import cuda\nprint(cuda.what_runs_here())\nprint(cuda.xp.__name__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert "CuPy is installed but finds no working GPU: RuntimeError" in done.stdout
    assert done.stdout.endswith("\nnumpy\n")


def test_the_runner_that_dies_is_our_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "runner", lambda: "/bin/false")
    with pytest.raises(cuda.RunnerError, match="ended with status 1"):
        launch_one()
