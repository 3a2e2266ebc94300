"""Traffic is counted as a GPU counts it: each number here is worked out by hand."""

import dataclasses
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest
from labkit import cuda

N = 1024
WARPS = N // 32


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def report_of(body: str, n: int = N, block: int = 256, array: np.ndarray | None = None) -> cuda.TrafficReport:
    """Run one statement for each of n threads on an array that is large enough, and return its traffic."""
    code = f"""extern "C" __global__ void touch(float* x, float* y)
    {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        {body}
    }}"""
    x = np.zeros(64 * n, np.float32) if array is None else array
    kernel = cuda.RawKernel(code, "touch")
    kernel((n // block,), (block,), (x, np.zeros(64 * n, np.float32)))
    return kernel.report


def test_neighbouring_floats_cost_four_sectors_a_warp() -> None:
    counts = report_of("x[i] = 1.0f;").total("global", "writes")
    assert counts == cuda.Counts(
        thread_accesses=N, warp_accesses=WARPS, bytes=4 * N, sectors=4 * WARPS, bank_conflicts=0, partial=0
    )


@pytest.mark.parametrize(
    ("index", "sectors"),
    [("i + 1", 5), ("2 * i", 8), ("8 * i", 32), ("32 * i", 32), ("0 * i", 1), ("i ^ 31", 4), ("i / 2", 2)],
)
def test_sectors_follow_the_addresses(index: str, sectors: int) -> None:
    assert (
        report_of(f"float v = x[{index}]; if (v > 1.0f) y[i] = v;").total("global", "reads").sectors == sectors * WARPS
    )


def test_a_float4_is_one_access_of_16_bytes() -> None:
    counts = report_of("float4 v = ((const float4*)x)[i]; if (v.x + v.w > 1.0f) y[i] = v.y;").total("global", "reads")
    assert (counts.warp_accesses, counts.bytes, counts.sectors) == (WARPS, 16 * N, 16 * WARPS)


def test_what_is_written_to_a_device_variable_counts() -> None:
    counts = report_of("static float kept[1024]; kept[i] = x[i]; __syncthreads(); y[i] = kept[i ^ 1];", block=N)
    assert counts.total("global", "writes").bytes == 2 * 4 * N
    assert counts.total("global", "reads").bytes == 4 * N


def test_a_lane_that_stays_away_makes_an_access_partial() -> None:
    counts = report_of("if (i % 32 != 5) x[i] = 1.0f;").total("global", "writes")
    assert (counts.partial, counts.warp_accesses, counts.thread_accesses) == (WARPS, WARPS, 31 * WARPS)


def test_lanes_that_go_two_ways_are_matched_again() -> None:
    report = report_of("if (i % 2) x[i] = 1.0f; else y[i] = 1.0f; x[i + 2048] = 2.0f;")
    last = report.lines[-1] if len(report.lines) > 1 else report.lines[0]
    assert last.counts.thread_accesses == 2 * N
    assert report.total("global", "writes").warp_accesses == 3 * WARPS


@pytest.mark.parametrize(("stride", "conflicts"), [(1, 0), (2, 1), (4, 3), (32, 31), (33, 0)])
def test_bank_conflicts_follow_the_stride(stride: int, conflicts: int) -> None:
    body = f"__shared__ float s[32 * 33 + 1]; s[{stride} * i] = 1.0f; __syncthreads(); x[i] = s[{stride} * (31 - i)];"
    report = report_of(body, n=32, block=32)
    assert report.total("shared", "writes").bank_conflicts == conflicts
    assert report.total("shared", "reads").bank_conflicts == conflicts


def test_one_word_for_all_lanes_is_no_conflict() -> None:
    body = "__shared__ float s[1]; if (i == 0) s[0] = 2.0f; __syncthreads(); x[i] = s[0];"
    assert report_of(body, n=32, block=32).bank_conflicts == 0


def test_wide_shared_accesses_are_served_in_parts_without_conflict() -> None:
    body = "__shared__ float4 s[32]; s[i] = make_float4(1, 2, 3, 4); __syncthreads(); x[i] = s[31 - i].y;"
    counts = report_of(body, n=32, block=32).total("shared", "writes")
    assert (counts.bytes, counts.bank_conflicts) == (512, 0)


def test_long_loops_are_matched_past_the_length_of_a_log() -> None:
    body = "float sum = 0.0f; for (int k = 0; k < 1000; ++k) sum += x[k * 32 + i % 32]; y[i] = sum;"
    counts = report_of(body).total("global", "reads")
    assert (counts.warp_accesses, counts.sectors, counts.partial) == (1000 * WARPS, 4000 * WARPS, 0)


def test_atomics_are_counted_apart() -> None:
    report = report_of("atomicAdd(&x[i / 32], 1.0f);")
    counts = report.total("global", "updates")
    assert (counts.thread_accesses, counts.sectors) == (N, WARPS)
    assert report.total("global", "writes") == cuda.Counts()


def test_local_variables_move_nothing() -> None:
    body = "float t[8]; for (int k = 0; k < 8; ++k) t[k] = k * i; x[i] = t[i % 8];"
    assert report_of(body).global_bytes == 4 * N


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_order_of_threads_changes_no_count(order: int) -> None:
    code = """extern "C" __global__ void sum(const float* x, float* y)
    {
        __shared__ float s[256];
        s[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
        __syncthreads();
        for (int half = 128; half > 0; half /= 2) {
            if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0) y[blockIdx.x] = s[0];
    }"""
    kernel = cuda.RawKernel(code, "sum")
    kernel((4,), (256,), (np.ones(1024, np.float32), np.zeros(4, np.float32)), order=order)
    report = kernel.report
    # each block stores 256 values, then 128 + 64 + … + 1 = 255 threads load two and store one; one loads the last
    assert report.total("shared", "writes").thread_accesses == 4 * (256 + 255)
    assert report.total("shared", "reads").thread_accesses == 4 * (2 * 255 + 1)
    assert (report.total("global", "reads").sectors, report.total("global", "writes").sectors) == (128, 4)


def test_a_report_is_frozen_and_names_its_lines() -> None:
    report = report_of("x[i] = y[i];")
    assert [(line.line, line.verb) for line in report.lines] == [(4, "reads"), (4, "writes")]
    assert report.bytes_per_thread == 8.0 and report.moved_bytes == 8 * N
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.kernel = "other"  # type: ignore[misc]


def test_the_table_shows_totals_and_lines() -> None:
    text = str(report_of("x[i] = y[i];"))
    assert "traffic of touch, 1,024 threads" in text
    assert "line 4: x[i] = y[i];" in text
    assert text.count("4,096") == 4


def test_the_picture_has_a_pair_of_bars_for_each_line() -> None:
    axes = cuda.draw_traffic(report_of("x[i] = y[8 * i];"))
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == [4 * N, 4 * N, 32 * N, 4 * N]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["line 4 reads", "line 4 writes"]
