"""Four faulty kernels. Each does one small thing that kernels of a cache do, with one mistake built in.

    missing_barrier   the largest magnitude of each row, one block for a row, through shared memory
    partial_block     numbers times the scale of their group of 16, one thread for each number
    lane_mix_up       the largest magnitude of each group of 16, two groups in a warp, through shuffles
    swapped_nibbles   two codes to a byte, and an assertion that the first can be read from it again

How a lab uses them:

    case = make_case("partial_block", np.random.default_rng(0))
    kernel = RawKernel(SUSPECTS["partial_block"], case.launch.kernel)
    run(kernel, case.launch)                             the runner's message
    mistake(repaired, case)                              empty, if a repaired text does what it should
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float32, Shaped, UInt8

from labkit.cuda import KernelError, RawKernel
from labkit.launches import Launch, run

ROW_THREADS: Final = 128
"""Threads of a block of `missing_barrier`: four warps share one row."""

BLOCK_THREADS: Final = 64
"""Threads of a block of the others."""

GROUP: Final = 16

MISSING_BARRIER: Final = r"""
// One block for each row: every thread looks at every 128th number, then half of the threads at a time take the larger
// of two, until thread 0 has the largest magnitude of the row.
extern "C" __global__ void largest_of_rows(const float* x, float* largest, int width)
{
    __shared__ float found[128];
    const float* row = x + blockIdx.x * width;

    float mine = 0.0f;
    for (int i = threadIdx.x; i < width; i += 128) mine = fmaxf(mine, fabsf(row[i]));
    found[threadIdx.x] = mine;
    __syncthreads();

    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) found[threadIdx.x] = fmaxf(found[threadIdx.x], found[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) largest[blockIdx.x] = found[0];
}
"""
"""Kernel `largest_of_rows(x, largest, width)`."""

PARTIAL_BLOCK: Final = r"""
// A block of 64 threads for 64 numbers, which are four groups of 16: y is x times the scale of the group.
// Four threads fetch the scales of the whole block. The last block may be a partial one.
extern "C" __global__ void multiply_by_scale(const float* x, const float* scales, float* y, int n)
{
    __shared__ float scale[4];
    const int i = blockIdx.x * 64 + threadIdx.x;

    if (threadIdx.x < 4) scale[threadIdx.x] = scales[4 * blockIdx.x + threadIdx.x];
    __syncthreads();
    if (i < n) y[i] = x[i] * scale[threadIdx.x / 16];
}
"""
"""Kernel `multiply_by_scale(x, scales, y, n)`."""

LANE_MIX_UP: Final = r"""
// One lane for each number, so that a warp holds two groups of 16; each half has a mask of its own.
// Launched with whole warps only.
extern "C" __global__ void largest_of_groups(const float* x, float* largest)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % 32;
    const unsigned int half_warp = lane < 16 ? 0x0000ffffu : 0xffff0000u;

    float amax = fabsf(x[i]);
    for (int distance = 16; distance > 0; distance /= 2)
        amax = fmaxf(amax, __shfl_xor_sync(half_warp, amax, distance));
    if (lane % 16 == 0) largest[i / 16] = amax;
}
"""
"""Kernel `largest_of_groups(x, largest)`."""

SWAPPED_NIBBLES: Final = r"""
// One thread for each byte. Element 2 * j belongs in the low half of byte j, element 2 * j + 1 in its high half.
extern "C" __global__ void pack_codes(const unsigned char* codes, unsigned char* packed, int n_bytes)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= n_bytes) return;

    const unsigned int first = codes[2 * j], second = codes[2 * j + 1];
    const unsigned int byte = first << 4 | second;
    packed[j] = byte;
    assert((packed[j] & 15u) == first);
}
"""
"""Kernel `pack_codes(codes, packed, n_bytes)`."""

SUSPECTS: Final[dict[str, str]] = {
    "missing_barrier": MISSING_BARRIER,
    "partial_block": PARTIAL_BLOCK,
    "lane_mix_up": LANE_MIX_UP,
    "swapped_nibbles": SWAPPED_NIBBLES,
}


class Case(NamedTuple):
    """A launch of a suspect: the array among its arguments that it writes, and what that should hold afterwards."""

    launch: Launch
    output: Shaped[np.ndarray, "..."]
    expected: Shaped[np.ndarray, "..."]


def make_case(name: str, rng: np.random.Generator) -> Case:
    """Return a launch of a suspect on drawn numbers, with which its mistake shows.

    Raises
    ------
    ValueError
        If there is no suspect of that name.
    """
    if name not in _MAKERS:
        raise ValueError(f"name: expected one of {', '.join(_MAKERS)}, got {name!r}")
    return _MAKERS[name](rng)


def mistake(code: str, case: Case) -> str:
    """Return what is wrong with a repaired text, empty if nothing is: the runner's message, or a wrong value."""
    for order in (0, 1, 2):
        case.output.fill(0)
        try:
            run(RawKernel(code, case.launch.kernel), case.launch, order=order)
        except KernelError as error:
            return str(error)
        wrong = np.flatnonzero(case.output != case.expected)
        if wrong.size:
            i = np.unravel_index(wrong[0], case.output.shape)
            return f"expected {case.expected[i]} at index {tuple(map(int, i))}, got {case.output[i]}"
    return ""


def _rows(rng: np.random.Generator) -> Case:
    """Rows that a block goes through more than once; the largest number is anywhere."""
    n_rows, width = int(rng.integers(2, 5)), int(rng.integers(ROW_THREADS + 1, 3 * ROW_THREADS))
    x = rng.normal(size=(n_rows, width)).astype(np.float32)
    largest = np.zeros(n_rows, np.float32)
    launch = Launch("largest_of_rows", (n_rows,), (ROW_THREADS,), (x, largest, np.int32(width)))
    return Case(launch, largest, np.abs(x).max(axis=1))


def _partial(rng: np.random.Generator) -> Case:
    """A number of groups that does not fill the last block."""
    n_groups = 4 * int(rng.integers(2, 6)) + int(rng.integers(1, 4))
    x = rng.normal(size=(n_groups, GROUP)).astype(np.float32)
    scales = rng.uniform(0.5, 2, n_groups).astype(np.float32)
    y = np.zeros_like(x)
    grid = -(-x.size // BLOCK_THREADS)
    launch = Launch("multiply_by_scale", (grid,), (BLOCK_THREADS,), (x, scales, y, np.int32(x.size)))
    return Case(launch, y, x * scales[:, None])


def _groups(rng: np.random.Generator) -> Case:
    """Whole blocks of groups."""
    x: Float32[np.ndarray, "n 16"] = rng.normal(size=(4 * int(rng.integers(2, 6)), GROUP)).astype(np.float32)
    largest = np.zeros(len(x), np.float32)
    launch = Launch("largest_of_groups", (x.size // BLOCK_THREADS,), (BLOCK_THREADS,), (x, largest))
    return Case(launch, largest, np.abs(x).max(axis=1))


def _codes(rng: np.random.Generator) -> Case:
    """Pairs of codes, of which the first two differ."""
    codes: UInt8[np.ndarray, " n"] = rng.integers(0, 16, 2 * int(rng.integers(70, 200)), np.uint8)
    codes[:2] = rng.permutation(16)[:2]
    packed = np.zeros(codes.size // 2, np.uint8)
    grid = -(-packed.size // BLOCK_THREADS)
    launch = Launch("pack_codes", (grid,), (BLOCK_THREADS,), (codes, packed, np.int32(packed.size)))
    return Case(launch, packed, codes[0::2] | codes[1::2] << 4)


_MAKERS: Final[dict[str, Callable[[np.random.Generator], Case]]] = {
    "missing_barrier": _rows,
    "partial_block": _partial,
    "lane_mix_up": _groups,
    "swapped_nibbles": _codes,
}
