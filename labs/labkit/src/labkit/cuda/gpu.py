"""Is there a GPU that works? CuPy on it, NumPy elsewhere, and one sentence that says which and why."""

import functools
import importlib
import importlib.util
import sys
from typing import Any

import numpy as np

from labkit.cuda import build, nvrtc
from labkit.cuda.errors import MissingToolError


@functools.cache
def cupy_module() -> Any:
    """Return CuPy if it is installed and a GPU computes 1 + 1 with it, else None."""
    return _try_cupy()[0]


def asnumpy(array: Any) -> np.ndarray[Any, Any]:
    """Return the array as a NumPy array, copied off the GPU if it lies there."""
    cupy = cupy_module()
    return np.asarray(array) if cupy is None else np.asarray(cupy.asnumpy(array))


def what_runs_here() -> str:
    """Say in one sentence what runs a kernel on this machine, and why."""
    cupy, why = _try_cupy()
    if cupy is not None:
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        return f"Kernels run on the GPU, {name}, through CuPy {cupy.__version__}."
    try:
        build.require_platform()
        build.compiler()
    except MissingToolError as error:
        return f"No kernel can run here: {why}, and for the CPU: {error}"
    check = f"NVRTC {nvrtc.version()} has checked them" if nvrtc.is_installed() else "g++ has compiled them alone"
    advice = "" if nvrtc.is_installed() else f"; for NVIDIA's own check: {build.INSTALL_NVRTC}"
    return f"Kernels run on the CPU, every access checked, after {check} ({why}{advice})."


@functools.cache
def _try_cupy() -> tuple[Any, str]:
    if importlib.util.find_spec("cupy") is None:
        return None, "CuPy is not installed"
    try:
        cupy = importlib.import_module("cupy")
        works = int(cupy.asnumpy(cupy.ones(1) + cupy.ones(1))[0]) == 2
    except Exception as error:  # CuPy fails in as many ways as there are broken drivers
        return None, f"CuPy is installed but finds no working GPU: {type(error).__name__}"
    return (cupy, "") if works else (None, "CuPy is installed but its GPU computes wrongly")


def array_module() -> Any:
    """Return CuPy or NumPy: where a kernel's arrays are made."""
    return cupy_module() or sys.modules["numpy"]
