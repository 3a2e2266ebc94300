"""The GPU benchmark as far as it can be tried without one: what it times computes the right thing, and it ends well."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from labkit import cuda
from labkit.cuda.gpu import cupy_module


@pytest.fixture(scope="module")
def bench(project: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernels_gpu", project / "bench" / "kernels_gpu.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["FP16", "FP8", "FP4"])
def test_kernel_of_each_format_agrees_with_float64(bench: ModuleType, name: str, monkeypatch) -> None:
    monkeypatch.setattr("labkit.cuda.kernels.cupy_module", lambda: None)
    bench.agree(name, cuda.RawKernel, np.asarray, np.asarray)


def test_a_kernel_that_is_off_is_not_timed(bench: ModuleType, monkeypatch) -> None:
    monkeypatch.setattr("labkit.cuda.kernels.cupy_module", lambda: None)
    wrong = bench.FORMATS["FP8"]._replace(load=bench.LOAD_FP8.replace("word >> 8 * j", "word >> 8 * i"))
    monkeypatch.setitem(bench.FORMATS, "FP8", wrong)
    with pytest.raises(SystemExit, match="FP8: expected the output of float64 within"):
        bench.agree("FP8", cuda.RawKernel, np.asarray, np.asarray)


@pytest.mark.skipif(cupy_module() is not None, reason="here is a GPU, and it would be timed")
def test_without_a_gpu_it_says_so_and_ends(project: Path) -> None:
    said = subprocess.run(
        [sys.executable, project / "bench" / "kernels_gpu.py"], capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith("Nothing to time: this needs a GPU.")
    assert "CuPy" in said.stdout
