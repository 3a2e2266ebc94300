"""Branches are counted where a warp's lanes part: each number here is worked out by hand."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from labkit import cuda
from labkit.cuda import runner

WARPS = 4
N = 32 * WARPS


def kernel_of(body: str) -> cuda.RawKernel:
    head = (
        'extern "C" __global__ void part(float* x, const int* n)\n{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;'
    )
    return cuda.RawKernel(f"{head}\n{body}\n}}", "part")


def branches_of(body: str, order: int = 0) -> dict[int, tuple[int, int]]:
    """Return what was executed and what was divergent at each line of a body, whose first line is 4."""
    kernel = kernel_of(body)
    kernel((WARPS // 2,), (64,), (np.ones(N, np.float32), np.arange(N, dtype=np.int32) % 4), order=order)
    assert kernel.report.branches is not None
    return {line.line: (line.executed, line.divergent) for line in kernel.report.branches}


@pytest.mark.parametrize("order", [0, 1, 2])
def test_two_ways_through_every_warp_are_divergent_in_each(order: int) -> None:
    body = "if (i % 2)\nx[i] = expf(x[i]);\nelse\nx[i] = logf(x[i]);"
    assert branches_of(body, order) == {4: (WARPS, WARPS)}


def test_warps_that_go_one_way_are_not_divergent() -> None:
    assert branches_of("if (i / 32 % 2) x[i] = expf(x[i]); else x[i] = logf(x[i]);") == {4: (WARPS, 0)}


def test_what_every_thread_does_is_no_branch() -> None:
    assert branches_of("if (gridDim.x == 2) x[i] = expf(x[i]);") == {}


def test_a_thread_that_returns_parts_from_its_warp() -> None:
    assert branches_of("if (i % 32 == 5) return;\nx[i] = expf(x[i]);") == {4: (WARPS, WARPS)}
    assert branches_of("if (i == 5) return;\nx[i] = expf(x[i]);") == {4: (WARPS, 1)}


def test_a_loop_is_divergent_where_some_lanes_leave_and_some_stay() -> None:
    body = (
        "float sum = 0.0f;\nfor (int k = 0; k < n[i]; ++k)\nsum += expf(x[(i + k) % 64]);\nif (sum < 0.0f) x[i] = sum;"
    )
    assert branches_of(body) == {5: (4 * WARPS, 3 * WARPS)}  # 0 to 3 rounds; at the last test all that are left leave


def test_lanes_are_matched_again_behind_a_barrier() -> None:
    body = """__shared__ float s[64];
    for (int k = 0; k < 3000; ++k) {
        if (threadIdx.x == 7) s[k % 64] = k;
        __syncthreads();
    }
    float sum = __shfl_sync(0xffffffffu, s[threadIdx.x], 1);
    if (i % 32 < 16) x[i] = expf(sum);"""
    assert branches_of(body) == {5: (3000 * WARPS, 0), 6: (3000 * WARPS, 3000 * WARPS // 2), 10: (WARPS, WARPS)}


def test_long_ways_are_counted_as_they_come() -> None:
    body = "for (int k = 0; k < 20000; ++k)\nif ((k + i) % 2) x[i] += 1.0f;\nelse x[i] *= 0.5f;"
    assert branches_of(body)[5] == (20000 * WARPS, 20000 * WARPS)


def test_the_runtimes_own_branches_are_none_of_the_kernels() -> None:
    assert branches_of("x[i] = __float2int_rz(1e20f * n[i]);") == {}


def test_branches_are_those_of_the_inputs_that_the_launch_had() -> None:
    kernel = kernel_of("if (x[i] < 0.0f) x[i] = expf(x[i]); else x[i] = -1.0f;")
    x = np.where(np.arange(N) % 2, -1.0, 1.0).astype(np.float32)
    kernel((WARPS,), (32,), (x, np.zeros(1, np.int32)))
    x[:] = 0.0
    assert kernel.report.divergent_branches == WARPS
    assert (x == 0.0).all()


def test_arrays_that_are_too_large_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MOST_KEPT_BYTES", 4 * N)
    kernel = kernel_of("if (i % 2) x[i] = expf(x[i]);")
    kernel((WARPS,), (32,), (np.ones(N, np.float32), np.zeros(1, np.int32)))
    assert kernel.report.branches is None
    assert str(kernel.report).endswith("branches: not counted, for the arrays are too large to launch again")


def test_table_and_picture_show_them() -> None:
    kernel = kernel_of("if (i % 2) x[i] = expf(x[i]);")
    kernel((WARPS,), (32,), (np.ones(N, np.float32), np.zeros(1, np.int32)))
    head, line, numbers = str(kernel.report).split("\n")[-3:]
    assert head.split() == ["branches", "executed", "divergent", "a", "warp"]
    assert line == "line 4: if (i % 2) x[i] = expf(x[i]);" and numbers.split() == ["4", "4", "1"]
    axes = cuda.draw_branches(kernel.report)
    assert [bar.get_width() for bar in axes.patches] == [4, 4]
    plt.close("all")
