"""CUDA C kernels with or without a GPU: the same source, the same call.

    kernel = RawKernel(code, "scale")
    x = xp.arange(1000, dtype=xp.float32)
    kernel((4,), (256,), (x, np.float32(2), np.int32(1000)))

Where a GPU works CuPy runs the kernel. Elsewhere NVIDIA's compiler checks the source, if it is installed, and the
kernel runs on the CPU: every access to memory is checked, and an error names line, thread and array element.

What differs on the CPU: no inline PTX, tensor cores, cooperative groups, textures, virtual functions or libcu++.
Products and sums are not fused, so compare sums of products within a tolerance. Blocks run one after another. A lock or
a flag orders accesses only together with __threadfence(), as CUDA's rules have it; without one the access it guards is
called a race. `__device__` variables begin anew in each launch.

What is not found: a pointer that a loop moves out of a thread's own array into another one (an index is followed), out
of one __device__ variable into the next, or further than 1 KiB out of one __shared__ variable into another; a missing
__threadfence() between volatile data and a volatile flag in global memory, whose accesses count as atomics; a race of
accesses that no thread makes in the orders that were run. A structure passed by value to a function that calls itself,
or through a pointer to a function, is copied unseen.
"""

import importlib
from typing import TYPE_CHECKING, Any

from labkit.cuda.branches import BranchLine
from labkit.cuda.errors import CompileError, CudaError, Fault, KernelError, LaunchError, MissingToolError, RunnerError
from labkit.cuda.gpu import array_module, asnumpy, what_runs_here
from labkit.cuda.kernels import RawKernel, RawModule
from labkit.cuda.traffic import Counts, LineTraffic, TrafficReport

if TYPE_CHECKING:
    from labkit.cuda.pictures import draw_branches, draw_traffic

__all__ = [
    "BranchLine",
    "CompileError",
    "Counts",
    "CudaError",
    "Fault",
    "KernelError",
    "LaunchError",
    "LineTraffic",
    "MissingToolError",
    "RawKernel",
    "RawModule",
    "RunnerError",
    "TrafficReport",
    "asnumpy",
    "draw_branches",
    "draw_traffic",
    "what_runs_here",
    "xp",
]

xp: Any = array_module()
"""CuPy where a GPU works, else NumPy: make a kernel's arrays with it."""


def __getattr__(name: str) -> Any:
    """Load what draws, and Matplotlib with it, when it is asked for."""
    if name in ("draw_branches", "draw_traffic"):
        return getattr(importlib.import_module("labkit.cuda.pictures"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
