"""A kernel of two lines, compiled and run in sandboxes as a student's is: does this machine grade kernels?"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autograder.errors import SandboxError
from autograder.limits import Limits
from autograder.native.booth import Ended, ask
from autograder.native.warm import warm_files

SOURCE = """extern "C" __global__ void doubled(const float* x, float* y)
{ y[threadIdx.x] = 2.0f * x[threadIdx.x]; }
"""
N_THREADS, MOST_SECONDS = 64, 120.0


@dataclass(frozen=True)
class Trial:
    """What the trial showed: seconds of each step, sandbox included, and NVRTC's version there, if it is there."""

    compile_seconds: float
    run_seconds: float
    nvrtc: str


def try_kernel(prefix: Path, limits: Limits) -> Trial:
    """Compile and run a kernel in sandboxes that show this environment.

    Raises
    ------
    SandboxError
        If that fails; the text says what is missing.
    """
    files = warm_files(prefix, limits, "bubblewrap")
    begun = time.monotonic()
    request = {"op": "compile", "code": SOURCE, "files": files, "kernels": ["doubled"], "checked": [True]}
    compiled = _answer(request, limits, prefix)
    between = time.monotonic()
    x = np.arange(N_THREADS, dtype=np.float32)
    ran = _answer(_launch(x, {**files, **compiled["files"]}), limits, prefix)
    if not np.array_equal(ran["runs"][0]["arrays"][1], 2 * x):
        raise SandboxError("kernels: expected each number doubled, got others")
    return Trial(between - begun, time.monotonic() - between, compiled["nvrtc"])


def _launch(x: np.ndarray, files: Mapping[str, bytes]) -> dict[str, Any]:
    arguments = [("array", 0), ("array", 1)]
    launch = {"kernel": "doubled", "grid": [1], "block": [N_THREADS], "args": arguments, "shared_mem": 0}
    return {
        "op": "launch",
        "code": SOURCE,
        "files": dict(files),
        "arrays": [x, np.zeros_like(x)],
        "launches": [launch],
        "orders": [0],
        "checked": True,
        "limit_s": 10.0,
    }


def _answer(request: Mapping[str, Any], limits: Limits, prefix: Path) -> dict[str, Any]:
    answer = ask(request, limits, prefix, "bubblewrap", MOST_SECONDS)
    if isinstance(answer, Ended) or "error" in answer:
        why = answer.why if isinstance(answer, Ended) else answer["error"]["text"]
        raise SandboxError(f"kernels: expected a kernel of two lines to {request['op']}, got: {why}")
    return answer
