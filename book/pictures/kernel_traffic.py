"""What the kernels of chapter 5 move, counted by the CPU run, beside the least that must be moved."""

from typing import Any, Final, NamedTuple

import numpy as np
from fp4kv.kernel_bytes import (
    decode_attention_traffic,
    dequantise_traffic,
    quantise_pack_traffic,
    unfused_attention_traffic,
)
from fp4kv.kernel_cases import AttentionCase
from fp4kv.kernel_tolerance import decode_attention_tolerance
from fp4kv.kernels import (
    DECODE_ATTENTION,
    DEQUANTISE,
    QUANTISE_PACK,
    decode_attention,
    dequantise_packed,
    quantise_pack,
)
from labkit.cuda import RawKernel, RawModule
from labkit.launches import Launch, plan_decode_attention, plan_dequantise, plan_quantise_pack, run
from labkit.plotting import COLOURS
from matplotlib.axes import Axes

N_ELEMENTS: Final = 65_536
HEADS, KV_HEADS, TOKENS, WIDTH, PARTS = 8, 2, 1024, 128, 4
STRIDES: Final = (1, 2, 4, 8, 16)
PICK: Final = """
extern "C" __global__ void pick(const float* x, float* y, int stride) {
    y[threadIdx.x] = x[threadIdx.x * stride];
}
"""
THICKNESS: Final = 0.5


class Row(NamedTuple):
    """One kernel: the least bytes it must move, what its threads ask for, what the transactions moved."""

    name: str
    least: int
    asked: int
    moved: int | None
    """None for what is derived and not run."""


def measure(kernel: RawKernel, *launches: Launch) -> tuple[int, int]:
    """Launch, and return the bytes asked of global memory and those that its sectors moved."""
    asked = moved = 0
    for launch in launches:
        run(kernel, launch)
        asked += kernel.report.global_bytes
        moved += kernel.report.moved_bytes
    return asked, moved


def quantise_and_back() -> list[Row]:
    """Return the rows of `quantise_pack` and `dequantise`, whose results are compared bit for bit."""
    x = np.random.default_rng(5).normal(size=N_ELEMENTS).astype(np.float32)
    launch, (packed, scales) = plan_quantise_pack(x)
    there = measure(RawKernel(QUANTISE_PACK, "quantise_pack"), launch)
    require_equal([packed, scales], quantise_pack(x))

    launch, decoded = plan_dequantise(packed, scales)
    back = measure(RawKernel(DEQUANTISE, "dequantise"), launch)
    require_equal([decoded], [dequantise_packed(packed, scales)])
    return [
        Row("quantise_pack", quantise_pack_traffic(N_ELEMENTS).total, *there),
        Row("dequantise", dequantise_traffic(N_ELEMENTS).total, *back),
    ]


def require_equal(got: Any, expected: Any) -> None:
    """Stop the page if a kernel's result is not that of its reference."""
    if not all(np.array_equal(one, other) for one, other in zip(got, expected, strict=True)):
        raise AssertionError("expected the kernel to give its reference's bytes")


def attention_case(n_parts: int = PARTS) -> AttentionCase:
    """Return one decode step: four query heads for each KV head."""
    rng = np.random.default_rng(6)
    keys, values = rng.normal(size=(2, 1, KV_HEADS, TOKENS, WIDTH)).astype(np.float32)
    q = rng.normal(size=(1, HEADS, WIDTH)).astype(np.float32)
    return AttentionCase(q, *quantise_pack(keys), *quantise_pack(values), np.array([TOKENS], np.int32), n_parts)


def attend(case: AttentionCase) -> tuple[tuple[int, int], float]:
    """Run both launches; return asked and moved bytes, and the largest error in units of its tolerance."""
    module = RawModule(code=DECODE_ATTENTION)
    launches, output = plan_decode_attention(*case[:-1], n_parts=case.n_parts)
    counts = [measure(module.get_function(launch.kernel), launch) for launch in launches]
    error = np.abs(output - decode_attention(*case[:-1])) / decode_attention_tolerance(case)
    return (sum(asked for asked, _ in counts), sum(moved for _, moved in counts)), float(error.max())


def attention() -> tuple[list[Row], float]:
    """Return the rows of attention, grouped, by query head and unfused, and the error in units of its tolerance."""
    case = attention_case()
    least = decode_attention_traffic([TOKENS], HEADS, KV_HEADS, WIDTH).total
    shared, error = attend(case)
    own_cache = [np.repeat(array, HEADS // KV_HEADS, axis=1) for array in case[1:5]]
    alone, _ = attend(AttentionCase(case.q, *own_cache, case.lengths, case.n_parts))
    unfused = unfused_attention_traffic([TOKENS], HEADS, KV_HEADS, WIDTH).total
    rows = [
        Row("decode_attention", least, *shared),
        Row("each query head alone", least, *alone),
        Row("dequantised first", least, unfused, None),
    ]
    return rows, error


def as_table(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """Return heads and cells."""
    head = ["kernel", "least (bytes)", "asked for", "moved", "moved / least"]
    cells = [
        [
            row.name,
            f"{row.least:,}",
            f"{row.asked:,}",
            f"{row.moved:,}" if row.moved else "not run",
            f"{(row.moved or row.asked) / row.least:.2f}" + ("" if row.moved else ", derived"),
        ]
        for row in rows
    ]
    return head, cells


def draw(axes: Axes, rows: list[Row]) -> None:
    """Draw what is moved in units of the least, from 1 on a scale of doublings; what is derived stays hollow."""
    for place, row in enumerate(rows):
        is_measured = row.moved is not None
        factor = (row.moved or row.asked) / row.least
        axes.barh(
            place,
            factor - 1,
            left=1,
            height=THICKNESS,
            facecolor=COLOURS["e2m1"] if is_measured else "none",
            edgecolor=COLOURS["e2m1"],
            linestyle="-" if is_measured else "--",
        )
        axes.annotate(f"{factor:.2f}", (factor, place), (5, 0), textcoords="offset points", va="center")
    axes.set_xscale("log", base=2)
    axes.set(xlim=(1, 32), xlabel="bytes moved / least bytes", xticks=(1, 2, 4, 8, 16))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(
        range(len(rows)),
        [row.name.replace("each query ", "each query\n").replace("d first", "d\nfirst") for row in rows],
    )
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def strided_sectors() -> dict[int, int]:
    """Return for each stride how many sectors one warp touches that reads 32 floats so far apart."""
    kernel = RawKernel(PICK, "pick")
    sectors = {}
    for stride in STRIDES:
        kernel((1,), (32,), (np.zeros(32 * stride, np.float32), np.zeros(32, np.float32), np.int32(stride)))
        sectors[stride] = kernel.report.total("global", "reads").sectors
    return sectors
