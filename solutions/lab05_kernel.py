# ---
# lab:
#   title: The kernel
#   packages: [numpy, matplotlib, jaxtyping, ml-dtypes, nvidia-cuda-nvrtc, labkit]
#   minutes: 120
#   solved_seconds: 90
#   limits: {memory_bytes: 2147483648, disk_bytes: 268435456, notebook_seconds: 600, cell_seconds: 120}
#   points: {explain-unfused: 6}
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3 (ipykernel), language: python, name: python3}
# ---

# %% [markdown]
# # The kernel
#
# A cache of four bits saves time only if nobody writes it out again in full.
# In this lab you write the kernels that quantise a cache, decode it, and attend over it without ever putting a decoded number into global memory.
#
# **You will** derive how many bytes each of them must move, write one loop of CUDA C in each of three kernels, count what they really move, and repair four kernels that somebody else wrote.
#
# **You need** NumPy, labs 2 and 3, chapter 5 of the book, which explains blocks, warps, shuffles and barriers, and about two hours.
# No GPU is needed: where there is none, the same text runs on the CPU, where every access to memory is checked.
# A C++ compiler is needed for that; the first cell says what it finds, and what to install.
#
# **The rules**
#
# - Besides Python's own modules you may import NumPy, Matplotlib, jaxtyping, ml_dtypes and `labkit`; a kernel may include `cuda_fp16.h` and `cuda_bf16.h`, and uses no inline assembler.
# - The functions of labs 2 and 3 are ready to use, and `labkit.launches` knows how each kernel is launched.
# - Run the cells in order. What counts is *Restart Kernel and Run All Cells*.
# - Each exercise ends in check cells that show a few cases. The grader has more of the same kind: other values, shapes and sizes, never another rule.
# - The grader takes the text of a kernel out of the notebook and runs it on a CPU, checked, under several orders of its threads. A race that your own run does not show is one all the same.
# - A kernel that is not written yet, or is wrong, costs its own points only.
#
# `labkit validate lab05_kernel.ipynb` in a terminal runs every visible case.
#
# Letters: $T$ tokens, $D$ width of a head, $s$ scale of a group of 16, $l$ logit, $m$ the largest logit so far; *query heads* come in groups that share a *KV head*.

# %%
import math

import matplotlib.pyplot as plt
import ml_dtypes
import numpy as np
from labkit import formats
from labkit.cuda import CudaError, RawKernel, asnumpy, draw_traffic, what_runs_here, xp
from labkit.expect import expect_bytes, expect_close, expect_values
from labkit.given.lab02 import dequantise, pack_nibbles, quantise_e2m1, unpack_nibbles
from labkit.given.lab03 import attend
from labkit.launches import plan_decode_attention, plan_dequantise, plan_quantise_pack, run
from labkit.plotting import COLOURS, use_course_style
from labkit.softmax_parts import Part
from labkit.suspects.lab05 import SUSPECTS, make_case, mistake

use_course_style()
print(what_runs_here())

# %% [markdown]
# On a GPU a kernel runs, but nothing checks it.
# To have it checked there too, start Jupyter with `CUDA_VISIBLE_DEVICES=` in front: then CuPy finds no GPU, and the CPU run takes over.

# %% [markdown]
# ## Derive (13 points)
#
# Five short answers, found on paper and written as functions, so that they can be checked.
#
# ### quantise_bytes (2 points)
#
# A kernel reads float32 numbers from global memory and writes E2M1 codes, two in a byte, and one E4M3 byte for each group of 16.
# Return the bytes that it must move at least, read and written together.
#
# By hand: 16 elements are 64 bytes in, 8 bytes of codes and 1 of a scale out, 73 in all.


# %% answer="quantise_bytes"
def quantise_bytes(n_elements: int) -> int:
    """Return the least traffic with global memory of quantising so many float32 numbers; a multiple of 16."""
    return 4 * n_elements + n_elements // 2 + n_elements // formats.GROUP_LENGTH


# %%
for n_elements in (16, 1024, 1_048_576):
    print(f"{n_elements:9,} elements: {quantise_bytes(n_elements):9,} bytes")

# %% check="quantise_bytes-both_ways"
"""Floats are read once, codes and scales are written once."""
expect_values(quantise_bytes(16), 73, given=16, any_width=True)
expect_values(quantise_bytes(1024), 4096 + 512 + 64, given=1024, any_width=True)

# %% [markdown]
# ### fused_bytes (3 points)
#
# One step of decoding: each query head has one query, and attends to `n_tokens` tokens of a packed cache.
# `heads // kv_heads` query heads share a KV head, whose keys and values they need only once for all of them.
# Nothing that is decoded goes back to memory.
# Count the packed keys and values with their scales, the queries (float32, read) and the outputs (float32, written).
#
# By hand: one token of one KV head of width 16 is 9 bytes of keys and 9 of values; one query head reads 64 bytes and writes 64; 146 in all.
# With 4 query heads for the one KV head: $18 + 4 \cdot 128 = 530$.


# %% answer="fused_bytes"
def fused_bytes(n_tokens: int, heads: int, kv_heads: int, width: int) -> int:
    """Return the least traffic of attending over a packed cache without writing what is decoded."""
    elements = 2 * n_tokens * kv_heads * width
    return elements // 2 + elements // formats.GROUP_LENGTH + 2 * 4 * heads * width


# %%
for n_tokens in (1024, 8192, 131_072):
    print(
        f"{n_tokens:7,} tokens, 32 query heads, 8 KV heads, width 128: {fused_bytes(n_tokens, 32, 8, 128) / 1e6:8.2f} MB"
    )

# %% check="fused_bytes-cache"
"""Packed keys and values of every token are read once, with their scales."""
expect_values(fused_bytes(1, 1, 1, 16) - fused_bytes(0, 1, 1, 16), 18, given="1 token, width 16", any_width=True)

# %% check="fused_bytes-group"
"""Query heads that share a KV head read it once together."""
added = [fused_bytes(100, heads, 2, 64) - fused_bytes(0, heads, 2, 64) for heads in (2, 8)]
expect_values(
    added[0], added[1], given="what 100 tokens add, for 8 and for 2 query heads on 2 KV heads", any_width=True
)

# %% check="fused_bytes-queries"
"""Each query head reads its query and writes its output, in float32."""
expect_values(fused_bytes(0, 4, 1, 16), 512, given="no token, 4 query heads of width 16", any_width=True)

# %% [markdown]
# ### unfused_bytes (3 points)
#
# The other way: one kernel decodes the cache into an array of floats of `float_bytes` bytes each, another attends over that array.
# Return the least traffic of the two together.
#
# By hand: one token of width 16, float32: 18 bytes of cache in, $32 \cdot 4$ out, $32 \cdot 4$ in again, and the query head's 128: 402 in place of 146.


# %% answer="unfused_bytes"
def unfused_bytes(n_tokens: int, heads: int, kv_heads: int, width: int, float_bytes: int) -> int:
    """Return the least traffic of decoding a packed cache into memory first, then attending over what was written."""
    elements = 2 * n_tokens * kv_heads * width
    packed = elements // 2 + elements // formats.GROUP_LENGTH
    return packed + 2 * float_bytes * elements + 2 * 4 * heads * width


# %%
sixteen_bits = 2 * 2 * 8192 * 8 * 128 + 2 * 4 * 32 * 128
print(f"an FP16 cache, read as it is:  {sixteen_bits / 1e6:6.1f} MB")
for float_bytes in (4, 2):
    moved = unfused_bytes(8192, 32, 8, 128, float_bytes)
    print(f"FP4, decoded to {float_bytes} bytes first: {moved / 1e6:6.1f} MB, {moved / sixteen_bits:.2f} times as much")
print(f"FP4, decoded on the way:       {fused_bytes(8192, 32, 8, 128) / 1e6:6.1f} MB")

# %% check="unfused_bytes-three_times"
"""The packed cache is read, the decoded one is written, and read again."""
added = unfused_bytes(1, 1, 1, 16, 4) - unfused_bytes(0, 1, 1, 16, 4)
expect_values(added, 18 + 256, given="1 token, width 16, 4 bytes", any_width=True)

# %% check="unfused_bytes-size"
"""Each byte of a decoded number moves twice, for keys and for values."""
added = unfused_bytes(1, 1, 1, 16, 4) - unfused_bytes(1, 1, 1, 16, 2)
expect_values(added, 128, given="1 token, width 16, 4 bytes less 2", any_width=True)

# %% [markdown]
# ### roofline_seconds (2 points)
#
# A GPU computes while it waits for memory.
# So a kernel takes at least as long as its bytes take, and at least as long as its operations take, whichever is longer: that is the **roofline**.
#
# By hand: 100 MB at 1 TB/s take 100 µs; $10^9$ operations at $10^{14}$ a second take 10 µs, and hide behind them.


# %% answer="roofline_seconds"
def roofline_seconds(n_bytes: int, n_operations: int, bandwidth: float, peak: float) -> float:
    """Return the least time of a kernel, at `bandwidth` bytes and `peak` operations per second."""
    return max(n_bytes / bandwidth, n_operations / peak)


# %%
for group in (1, 4, 16, 64):
    operations = 4 * 8192 * group * 8 * 128  # a multiplication and an addition for q·k, and again for p·v
    microseconds = 1e6 * roofline_seconds(fused_bytes(8192, group * 8, 8, 128), operations, 2e12, 2e13)
    print(f"{group:2} query heads for a KV head, at 2 TB/s and 20 TFLOP/s: {microseconds:6.1f} µs")

# %% check="roofline_seconds-memory"
"""A kernel with few operations for each byte takes as long as its bytes."""
expect_close(roofline_seconds(100_000_000, 10**9, 1e12, 1e14), 1e-4, 1e-12, given="100 MB, 1e9 operations")

# %% check="roofline_seconds-arithmetic"
"""A kernel with many operations for each byte takes as long as its operations."""
expect_close(roofline_seconds(100_000_000, 10**11, 1e12, 1e14), 1e-3, 1e-12, given="100 MB, 1e11 operations")

# %% [markdown]
# ### merge_parts (3 points)
#
# Softmax needs the largest logit before it can begin, and a long context does not fit on the chip.
# **Online softmax** begins without it: of a part of the context it keeps `Part(largest, total, output)`: $m$, the largest logit, $\sum_i e^{l_i - m}$, and $\sum_i e^{l_i - m} v_i$, which is not divided yet.
# Two parts have different $m$, so their sums cannot be added as they are.
# Return the `Part` of both together; no exponential may overflow.
#
# By hand: `Part(0, 1, [10])` and `Part(ln 2, 1, [40])` are two tokens whose weights are as 1 to 2.
# Under the larger maximum, $\ln 2$, the first counts half: `Part(ln 2, 1.5, [45])`, and $45 / 1.5 = 30$ is the output.


# %% answer="merge_parts"
def merge_parts(first: Part, second: Part) -> Part:
    """Return what online softmax keeps of two parts of a context taken together."""
    largest = max(first.largest, second.largest)
    shares = [math.exp(part.largest - largest) for part in (first, second)]
    total = shares[0] * first.total + shares[1] * second.total
    return Part(largest, total, shares[0] * first.output + shares[1] * second.output)


# %%
merged = merge_parts(Part(0.0, 1.0, np.array([10.0])), Part(math.log(2), 1.0, np.array([40.0])))
print(merged, "output", merged.output / merged.total)

# %% check="merge_parts-maxima"
"""Two parts of different maxima make the softmax of the whole, whichever comes first."""
parts = Part(0.0, 1.0, np.array([10.0])), Part(math.log(2), 1.0, np.array([40.0]))
for first, second in (parts, parts[::-1]):
    largest, total, output = merge_parts(first, second)
    expect_close([largest, total, float(output[0])], [math.log(2), 1.5, 45.0], 1e-9, given=f"{first}, {second}")

# %% check="merge_parts-large"
"""Logits around 2000, or -2000, make neither infinity nor 0 / 0."""
for offset in (2000.0, -2000.0):
    first, second = Part(offset, 1.0, np.array([10.0])), Part(offset + 1, 1.0, np.array([10.0]))
    _, total, output = merge_parts(first, second)
    expect_close(output / total, [10.0], 1e-9, given=f"two tokens with logits {offset} and {offset + 1}")

# %% [markdown]
# ## Implement (36 points)
#
# Three kernels, in CUDA C.
# Each is a text, given to `RawKernel(code, name)`, and launched as CuPy launches it: `kernel(grid, block, arguments, shared_mem=0)`.
# What surrounds the loop is written; the loop is yours.
# The line `#error` stands where it belongs, so that no compiler takes the text before.
#
# On a CPU a wrong kernel gets an answer: the kind of the mistake, the thread, the array element, and the line.
# Read it: the line is a line of your text.
#
# The CPU run goes by CUDA's rules, also where some GPU forgives.
# A `__syncthreads()`, or a shuffle whose mask names all 32 lanes, is a mistake once some of its threads have returned.
# A flag that one thread sets for another needs atomics or `__threadfence()`: `volatile` alone does not make it right.
# And a clean run speaks for the inputs, sizes and thread orders that were run, for no others.
#
# If CUDA is new to you, begin with `dequantise`: its loop is the shortest, and the three do not need each other.
#
# ### quantise_pack (12 points)
#
# One lane holds one element, and 16 lanes share a scale.
# They find their largest magnitude by **shuffles**: `__shfl_xor_sync(FULL_WARP, amax, 8)` gives each lane what the lane whose number differs in bit 3 has.
# After distances 8, 4, 2 and 1 all sixteen have the maximum.
#
# | lane | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | has | 5 | 1 | 7 | 2 |
# | after distance 2 | 7 | 2 | 7 | 2 |
# | after distance 1 | 7 | 7 | 7 | 7 |
#
# Then the rules of lab 2: the scale is amax/6, at least $2^{-9}$, as E4M3; the codes are those of x over what the scale's byte stands for; element $2j$ lies in the low half of byte $j$.
# Both divisions are correctly rounded, `__fdiv_rn(a, b)`.
# Two lanes have the two codes of a byte, and one of them writes it: the other's code comes by one more shuffle.
#
# Functions for single numbers are given, and declared at the top: `encode_e4m3`, `decode_e4m3`, `encode_e2m1`; what the names in capitals mean stands beside them.

# %% answer="quantise_pack"
from fp4kv.kernels import QUANTISE_PACK


# %%
def quantised(x, **launch_options):
    """Return packed codes and scales that the kernel makes of x, and the kernel, which holds the report."""
    kernel = RawKernel(QUANTISE_PACK, "quantise_pack")
    launch, outputs = plan_quantise_pack(xp.asarray(x))
    run(kernel, launch._replace(**launch_options))
    return *map(asnumpy, outputs), kernel


def as_bytes(x):
    """Return packed codes and scales of x as lab 2 has them."""
    expected = quantise_e2m1(x)
    return pack_nibbles(expected.codes), expected.scales.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


group = np.float32([[12, -6, 3, 1.5, 1, 0.5, 0.25, 0, -12, 6, -3, 2, -1, 4, -8, 9]])
packed, scales, _ = quantised(group)
print("codes ", [f"{byte:#04x}" for byte in packed[0]])
print("scale ", f"{scales[0, 0]:#04x}", scales.view(ml_dtypes.float8_e4m3fn)[0, 0])

# %% check="quantise_pack-runs"
"""A few whole blocks of ordinary numbers, under three thread orders."""
x = np.tile(np.float32([12, -6, 3.1, 1.6, 1, 0.6, 0.2, 0, -12, 6, -3.1, 2, -1, 4, -8.1, 9]), (32, 1))
expect_bytes(quantised(x)[1], as_bytes(x)[1], given=x[:1])
expect_values(np.sort(unpack_nibbles(quantised(x)[0])), np.sort(quantise_e2m1(x).codes), given=x[:1])

# %% check="quantise_pack-nibbles"
"""Element 2j lies in the low half of byte j."""
x = np.tile(np.float32([6, 0, 1, 0, 2, 0, 3, 0] * 2), (16, 1))
expect_bytes(quantised(x)[0], as_bytes(x)[0], given=x)

# %% check="quantise_pack-ties"
"""Quotients at a tie and beside one are coded to the nearest, ties to even, under every scale."""
x = np.tile(
    np.float32([6, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -6, -0.25, -0.75, -1.25, -1.75, -2.5, -3.5, -5]), (16, 1)
)
expect_bytes(quantised(x)[0], as_bytes(x)[0], given=x)

# %% check="quantise_pack-scales"
"""The scale is amax / 6, wherever in the group amax is, rounded once to E4M3, ties to even."""
x = np.full((16, 16), 0.5, np.float32)
x[np.arange(16), np.arange(16)] = np.float32(6 + 0.375 * np.arange(1, 17))
expect_bytes(quantised(x)[1], as_bytes(x)[1], given=x)

# %% check="quantise_pack-extremes"
"""Groups of zeros, of numbers below every scale, and of numbers above every scale."""
x = np.outer(np.float32([0, 1e-30, 1e-4, 2688, 1e6, 1e30] * 8), np.linspace(-1, 1, 16, dtype=np.float32))
expect_bytes(quantised(x)[1], as_bytes(x)[1], given=x)
expect_bytes(quantised(x)[0], as_bytes(x)[0], given=x)

# %% check="quantise_pack-ragged"
"""From one group on, any number of them, without an access beyond the end."""
for n_groups in (1, 2, 3, 17):
    x = np.random.default_rng(n_groups).normal(size=(n_groups, 16)).astype(np.float32)
    expect_bytes(quantised(x)[0], as_bytes(x)[0], given=f"{n_groups} groups")

# %% check="quantise_pack-traffic"
"""The threads ask for at most 1.5 times the bytes that must be moved."""
x = np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32)
if xp is np:  # a GPU does not say what it moved
    expect_close(quantised(x)[2].report.global_bytes / (73 * 64), 1.0, 0.5, given="64 groups, bytes over 73 · 64")

# %% check="quantise_pack-sectors"
"""The transactions move at most three times the bytes that must be moved."""
x = np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32)
if xp is np:
    expect_close(quantised(x)[2].report.moved_bytes / (73 * 64), 1.0, 2.0, given="64 groups, bytes over 73 · 64")

# %% check="quantise_pack-large"
"""More elements than the grid has threads, compared without tracing."""
x = np.random.default_rng(1).normal(size=(100, 16)).astype(np.float32)
expect_bytes(quantised(x, grid=(2,))[0], as_bytes(x)[0], given="1600 elements, 2 blocks of 256 threads")

# %% [markdown]
# ### dequantise (7 points)
#
# The way back, and the shortest of the three loops: one thread for each byte, which holds two neighbours.
# A code times its scale is exact in float32.
#
# By hand: byte `0x75` under the scale byte `0x38`, which is 1, holds code 5 and then code 7: the numbers 3 and 6.
# A grid has at most 4,096 blocks here, so a long array needs the loop: thread $j$ takes byte $j$, then the byte `n_threads` further, and so on to the end.

# %% answer="dequantise"
from fp4kv.kernels import DEQUANTISE


# %%
def decoded(packed, scales, **launch_options):
    """Return what the kernel makes of packed codes and scales, and the kernel."""
    kernel = RawKernel(DEQUANTISE, "dequantise")
    launch, x = plan_dequantise(xp.asarray(packed), xp.asarray(scales))
    run(kernel, launch._replace(**launch_options))
    return asnumpy(x), kernel


def cache_of(n_groups, seed=0):
    """Return a packed cache and what it stands for, as lab 2 has it."""
    x = np.random.default_rng(seed).normal(size=(n_groups, 16)).astype(np.float32)
    return *as_bytes(x), dequantise(quantise_e2m1(x))


print(decoded(*as_bytes(group))[0])

# %% check="dequantise-runs"
"""A few whole blocks of a cache with scales of 1, under three thread orders."""
x = np.tile(np.float32([6, 4, 3, 2, 1.5, 1, 0.5, 0, -6, -4, -3, -2, -1.5, -1, -0.5, 0]), (64, 1))
expect_values(np.sort(decoded(*as_bytes(x))[0]), np.sort(x), given=x)

# %% check="dequantise-nibbles"
"""The low half of byte j is element 2j."""
x = np.tile(np.float32([6, 0, 1, 0, 2, 0, 3, 0] * 2), (32, 1))
expect_values(decoded(*as_bytes(x))[0], x, given=x)

# %% check="dequantise-scales"
"""Each byte under each scale from 0 to 448, bit for bit, zeros of both signs among them."""
packed, scales, expected = cache_of(64)
expect_values(decoded(packed, scales)[0], expected, given="64 groups", signed_zeros=True)

# %% check="dequantise-ragged"
"""From one group on, any number of them, without an access beyond the end."""
for n_groups in (1, 3, 33):
    packed, scales, expected = cache_of(n_groups)
    expect_values(decoded(packed, scales)[0], expected, given=f"{n_groups} groups")

# %% check="dequantise-traffic"
"""The threads ask for at most 1.5 times the bytes that must be moved; transactions move at most three times."""
packed, scales, _ = cache_of(128)
if xp is np:
    report = decoded(packed, scales)[1].report
    expect_close(report.global_bytes / (73 * 128), 1.0, 0.5, given="128 groups, bytes over 73 · 128")
    expect_close(report.moved_bytes / (73 * 128), 1.0, 2.0, given="128 groups, bytes over 73 · 128")

# %% check="dequantise-large"
"""More bytes than the grid has threads, compared without tracing."""
packed, scales, expected = cache_of(200)
expect_values(decoded(packed, scales, grid=(2,))[0], expected, given="1600 bytes, 2 blocks of 256 threads")

# %% [markdown]
# ### decode_attention (17 points)
#
# The one that all of this is for.
# A block takes a part of the context of one KV head, one warp for each query head that shares it.
# Tile by tile, 32 tokens at a time, the block decodes keys into shared memory, each lane takes the logit of one token, and the warp moves its running maximum; then the values come into the same tile.
# It is `merge_parts` again, with a tile for the second part.
# Given are `load_tile`, which the whole block calls, and `warp_max` and `warp_sum`, which bring the largest number of 32 lanes, or their sum, to each of them.
#
# | a lane holds | for | where |
# |---|---|---|
# | one logit, then one weight | the token `first + lane` | `weights[lane]`, which its whole warp reads |
# | up to eight sums | the channels `lane`, `lane + 32`, … | `output[0]`, `output[1]`, … |
# | the running maximum and sum | its query head | each lane of the warp has the same |
#
# Two things are easy to get wrong.
# The tile belongs to the whole block, so a `__syncthreads()` stands between whoever writes it and whoever reads it, in both directions.
# And when the maximum grows, both the running sum and the running output shrink by $e^{m_\text{old} - m_\text{new}}$.
#
# A second kernel, `combine_parts`, is written: it does for whole parts what you do for tiles.

# %% answer="decode_attention"
from fp4kv.kernels import DECODE_ATTENTION


# %%
def attended(q, keys, values, lengths, n_parts=1):
    """Return the output of the two launches over the packed cache of keys and values, and the two kernels."""
    cache = [xp.asarray(array) for x in (keys, values) for array in as_bytes(x)]
    launches, output = plan_decode_attention(xp.asarray(q), *cache, xp.asarray(np.int32(lengths)), n_parts=n_parts)
    kernels = [RawKernel(DECODE_ATTENTION, launch.kernel) for launch in launches]
    for kernel, launch in zip(kernels, launches, strict=True):
        run(kernel, launch)
    return asnumpy(output), kernels


def attended_exactly(q, keys, values, lengths):
    """Return the same in float64, with lab 3's attend, over what the cache decodes to."""
    output = np.zeros(q.shape)
    kv_heads = keys.shape[1]
    keys, values = (dequantise(quantise_e2m1(x)) for x in (keys, values))
    for b, length in enumerate(lengths):
        for h in range(q.shape[1]) if length else ():
            shared = b, h // (q.shape[1] // kv_heads), slice(length)
            output[b, h] = attend(q[b, h : h + 1], keys[shared], values[shared])[0]
    return output


def attention_inputs(batch, heads, kv_heads, n_tokens, width, seed=0):
    """Return queries, keys and values."""
    rng = np.random.default_rng(seed)
    keys, values = rng.normal(size=(2, batch, kv_heads, n_tokens, width)).astype(np.float32)
    return rng.normal(size=(batch, heads, width)).astype(np.float32), keys, values


def expect_attention(*shape, lengths, n_parts=1, times=1.0):
    """Compare the kernel with float64; 1e-5 of values up to about 4 is some hundred roundings of float32."""
    q, keys, values = attention_inputs(*shape)
    q *= np.float32(times)
    got, _ = attended(q, keys, values, lengths, n_parts)
    given = f"batch, heads, KV heads, tokens, width: {shape}, lengths {lengths}, parts {n_parts}"
    expect_close(got, attended_exactly(q, keys, values, lengths), 1e-5 * max(1.0, times), given=given)


q, keys, values = attention_inputs(1, 2, 1, 32, 16)
got, kernels = attended(q, keys, values, [32])
print("largest error:", np.abs(got - attended_exactly(q, keys, values, [32])).max())

# %% check="decode_attention-runs"
"""One full tile of 32 tokens, two query heads for one KV head, under three thread orders."""
expect_attention(1, 2, 1, 32, 32, lengths=[32])

# %% check="decode_attention-tiles"
"""Several full tiles in one part, whichever of them holds the largest logit."""
expect_attention(1, 2, 1, 128, 32, lengths=[128])

# %% check="decode_attention-ragged"
"""Lengths of 0, 1 and beside multiples of 32, in one batch."""
expect_attention(5, 2, 1, 70, 16, lengths=[70, 0, 1, 33, 31])

# %% check="decode_attention-heads"
"""Groups of 1, 3 and 8 query heads, several KV heads and sequences."""
expect_attention(2, 2, 2, 32, 16, lengths=[32, 32])
expect_attention(1, 6, 2, 32, 16, lengths=[32])

# %% check="decode_attention-widths"
"""Widths of 16, 48, 80, 128 and 256."""
expect_attention(1, 1, 1, 32, 48, lengths=[32])
expect_attention(1, 1, 1, 32, 128, lengths=[32])

# %% check="decode_attention-large_logits"
"""Logits around 120 and around -120, whose exponentials float32 does not hold."""
expect_attention(1, 2, 2, 32, 32, lengths=[32], times=200.0)

# %% check="decode_attention-parts"
"""A context of 128 tokens in four parts of one tile each."""
expect_attention(2, 2, 1, 128, 16, lengths=[128, 96], n_parts=4)

# %% check="decode_attention-traffic"
"""The first launch asks for at most 1.35 times the bytes that it must move, each KV head once for its group."""
if xp is np:
    _, (first_launch, _) = attended(*attention_inputs(1, 8, 1, 256, 64), [256])
    least = fused_bytes(256, 8, 1, 64)
    expect_close(first_launch.report.global_bytes / least, 1.0, 0.35, given=f"8 query heads, bytes over {least}")

# %% check="decode_attention-long"
"""2,000 tokens of width 128, in parts, eight query heads for two KV heads; compared without tracing."""
expect_attention(1, 8, 2, 512, 128, lengths=[500], n_parts=4)

# %% [markdown]
# ## Benchmark (3 points)
#
# The CPU run counts what a launch asks of memory, line by line, and what the transactions of 32 bytes move.
# Nothing of that is a time, and no time of the CPU run says anything about a GPU; the bytes are the same on both.

# %%
_, _, quantising = quantised(np.random.default_rng(0).normal(size=(512, 16)).astype(np.float32))
packed, scales, _ = cache_of(512)
_, decoding = decoded(packed, scales)
_, (attending, _) = attended(*attention_inputs(1, 8, 2, 256, 64), [256])
if xp is np:
    least = [quantise_bytes(512 * 16), quantise_bytes(512 * 16), fused_bytes(256, 8, 2, 64)]
    figure, panels = plt.subplots(3, 1, figsize=(9, 8))
    for panel, kernel, n_bytes in zip(panels, (quantising, decoding, attending), least, strict=True):
        report = kernel.report
        asked, moved = report.global_bytes / n_bytes, report.moved_bytes / n_bytes
        draw_traffic(report, panel)
        panel.set(title=f"{report.kernel}: {asked:.2f} times the least asked for, {moved:.2f} times moved")
    plt.show()
else:
    print("The CPU run counts traffic; this machine runs kernels on its GPU, which does not.")

# %% [markdown]
# ### decode_speedup (3 points)
#
# Part of a decode step takes its time whatever the bytes: launching a kernel, waiting for the first bytes, combining parts.
# Call that `fixed` seconds, the same for both.
# Return how many times faster a step is over a packed cache (4.5 bits per element) than over one of FP16: each takes the fixed time and the time of its cache's bytes.
# Leave queries and outputs out: they are the same for both, and small.
#
# By hand: at no tokens the answer is 1, at very many it is $16/4.5 = 3.56$.
# Where the FP16 cache takes as long as the fixed time, it is $(1 + 1)/(1 + 4.5/16) = 1.56$.


# %% answer="decode_speedup"
def decode_speedup(n_tokens: int, kv_heads: int, width: int, bandwidth: float, fixed: float) -> float:
    """Return the time of a decode step over an FP16 cache, over that over a packed cache."""
    elements = 2 * n_tokens * kv_heads * width
    packed = elements / 2 + elements / formats.GROUP_LENGTH
    return (fixed + 2 * elements / bandwidth) / (fixed + packed / bandwidth)


# %%
contexts = 2 ** np.arange(6, 21)
for bandwidth, label in ((4e12, "4 TB/s"), (5e11, "0.5 TB/s")):
    plt.plot(contexts, [decode_speedup(int(n), 8, 128, bandwidth, 1e-5) for n in contexts], ".-", label=label)
plt.axhline(16 / 4.5, color=COLOURS["muted"], linestyle="--")
plt.xscale("log", base=2)
plt.gca().set(xlabel="context (tokens)", ylabel="times as fast as FP16", title="8 KV heads of width 128, 10 µs fixed")
plt.legend()
plt.show()

# %% check="decode_speedup-long"
"""Over a billion tokens the speedup is 16 / 4.5, whatever the fixed time."""
expect_close(decode_speedup(10**9, 8, 128, 1e12, 1e-5), 16 / 4.5, 1e-3, given="a billion tokens")

# %% check="decode_speedup-none"
"""Over a single token there is next to nothing to gain."""
expect_close(decode_speedup(1, 8, 128, 1e12, 1e-5), 1.0, 0.01, given="one token")

# %% check="decode_speedup-between"
"""Where bytes and fixed time cost alike, the speedup lies between."""
expect_close(decode_speedup(1000, 1, 125, 1e11, 5e-6), 2 / (1 + 4.5 / 16), 1e-9, given="500 KB at 100 GB/s, 5 µs fixed")

# %% [markdown]
# On a GPU the next cell measures: the bandwidth that each kernel achieves, beside a copy from the device's memory to itself, which reads and writes every byte.
# Without one there is nothing to measure, and it says so.


# %%
def seconds_of(work, n_runs=20):
    """Return the median time of some work on the GPU, by its own clock."""
    work()
    times = []
    for _ in range(n_runs):
        begin, end = xp.cuda.Event(), xp.cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(xp.cuda.get_elapsed_time(begin, end) / 1000)
    return float(np.median(times))


if xp is np:
    print("No GPU here, so no bandwidth is measured; chapter 5 derives what memory allows.")
else:
    x = xp.zeros((1 << 20, 64), xp.float32)
    copy = 2 * x.nbytes / seconds_of(lambda: x.copy())
    launch, outputs = plan_quantise_pack(x)
    kernel = RawKernel(QUANTISE_PACK, "quantise_pack")
    quantise = quantise_bytes(x.size) / seconds_of(lambda: run(kernel, launch))
    launch, _ = plan_dequantise(*outputs)
    kernel = RawKernel(DEQUANTISE, "dequantise")
    decode = quantise_bytes(x.size) / seconds_of(lambda: run(kernel, launch))
    print(f"copy {copy / 1e9:.0f} GB/s; quantise_pack {quantise / copy:.2f} of that, dequantise {decode / copy:.2f}")

# %% [markdown]
# ## Debug (8 points)
#
# Four small kernels, each with one mistake.
# `SUSPECTS` holds their texts, `make_case(name, rng)` a launch with its expected output, and `mistake(code, case)` runs a text on it and returns what is wrong: the runner's message, or a wrong value, or nothing.
#
# | suspect | should | what the CPU run says |
# |---|---|---|
# | `missing_barrier` | find the largest magnitude of each row | a race |
# | `partial_block` | multiply numbers by the scale of their group | an access out of bounds |
# | `lane_mix_up` | find the largest magnitude of each group of 16 | a value from a lane that takes no part |
# | `swapped_nibbles` | pack two codes into a byte | an assertion that does not hold |
#
# (On a GPU nothing of this is said; the values alone may be wrong, or not.
# Hide the GPU as described at the top.)

# %%
for name, code in SUSPECTS.items():
    try:
        print(f"{name}\n{mistake(code, make_case(name, np.random.default_rng(0)))}\n")
    except CudaError as error:
        print(f"{name}\n{error}\n")

# %%
suspect = "missing_barrier"  # or another one
for line, text in enumerate(SUSPECTS[suspect].splitlines(), 1):
    print(f"{line:3}  {text}")

# %% [markdown]
# ### repair (8 points)
#
# Return the text of a suspect with its mistake repaired: right values under any order of the threads, and nothing for the runner to complain about.
# One line changed, or added, is enough for each; the assertion stays.
# Kernel names and parameters must stay as they are.


# %% answer="repair"
def repair(name: str) -> str:
    """Return the repaired text of one of the four suspects."""
    wrong, right = {
        "missing_barrier": (
            "found[threadIdx.x + half]);\n",
            "found[threadIdx.x + half]);\n        __syncthreads();\n",
        ),
        "partial_block": ("if (threadIdx.x < 4)", "if (threadIdx.x < 4 && 64 * blockIdx.x + 16 * threadIdx.x < n)"),
        "lane_mix_up": ("int distance = 16", "int distance = 8"),
        "swapped_nibbles": ("first << 4 | second", "first | second << 4"),
    }[name]
    return SUSPECTS[name].replace(wrong, right)


# %%
for name in SUSPECTS:
    print(f"{name}: {mistake(repair(name), make_case(name, np.random.default_rng(0))) or 'repaired'}")

# %% check="repair-missing_barrier"
"""missing_barrier: the repaired kernel finds the largest magnitude of each row, in any order of its threads."""
found = mistake(repair("missing_barrier"), make_case("missing_barrier", np.random.default_rng(1)))
expect_values(found == "", True, given=f"missing_barrier: {found}")

# %% check="repair-partial_block"
"""partial_block: the repaired kernel multiplies every number, also of the last block, and reads nothing beyond the end."""
found = mistake(repair("partial_block"), make_case("partial_block", np.random.default_rng(1)))
expect_values(found == "", True, given=f"partial_block: {found}")

# %% check="repair-lane_mix_up"
"""lane_mix_up: the repaired kernel finds the largest magnitude of each group, and no lane waits for an absent one."""
found = mistake(repair("lane_mix_up"), make_case("lane_mix_up", np.random.default_rng(1)))
expect_values(found == "", True, given=f"lane_mix_up: {found}")

# %% check="repair-swapped_nibbles"
"""swapped_nibbles: the repaired kernel packs the first of two codes into the low half."""
found = mistake(repair("swapped_nibbles"), make_case("swapped_nibbles", np.random.default_rng(1)))
expect_values(found == "", True, given=f"swapped_nibbles: {found}")

# %% [markdown] task="explain-unfused"
# ## Explain (6 points)
#
# A colleague writes: *"Our cache is FP4 now. Before each decode step a kernel turns it into FP16, and the attention we always had reads that. Both kernels run clean on the CPU runner, at almost the same number of seconds there, so it must be a gain of 3.5 times on the GPU."*
#
# Answer in about eight sentences, with numbers from above:
#
# 1. How many bytes per element does each of the three ways move: FP16 as it was, FP4 decoded to FP16 first, FP4 fused? What is the speedup of the colleague's way, and what does it still save?
# 2. Why is the time of decode attention one of bytes and not of operations, and what would have to change for that not to hold?
# 3. What can a clean CPU run tell about a kernel on a GPU, and what can it not?
#
# ### BEGIN MARK SCHEME
# **1 (2 points).** Per element: FP16 2 bytes; decoded first 9/16 + 2 + 2 = 4.56 bytes; fused 9/16 = 0.56 bytes (1 point).
# So the colleague's way is 2.3 times slower than FP16 was, not 3.5 times faster; fused it would be up to 3.56 times faster. What is saved is memory that stays occupied between steps, if the decoded copy is only temporary (1 point).
#
# **2 (2 points).** One query head does 4 operations for each pair of elements of key and value, about 2 per element, on 0.56 bytes: some 3.6 operations per byte, while a GPU can do ten or more per byte it reads, hundreds with tensor cores (1 point).
# A large group of query heads for one KV head, many queries at once (prefill, speculative drafts) reuse each byte more often; from the ratio peak over bandwidth on, arithmetic sets the time; decoding costs operations too (1 point).
#
# **3 (2 points).** It can tell: accesses out of bounds, races, barriers, shuffles, on the inputs and shapes that were run; values up to rounding; bytes asked for, sectors, bank conflicts, which are the same on a GPU (1 point).
# It cannot: time, caches, occupancy, registers, the overlap of loads with arithmetic; nor shapes that were not run, nor last bits, since a GPU may fuse products and sums (1 point).
# ### END MARK SCHEME

# %% [markdown]
# ## Hand in
#
# Save the notebook, restart the kernel, run all cells, and let `labkit validate lab05_kernel.ipynb` tell you which visible cases pass.
# What is still wrong says so in its check cell: the input, what was expected, what came, or the runner's message.
# Then hand in `lab05_kernel.ipynb`, under this name, in the way that your course uses.
# Chapter 5 of the book has the derivations, and the traffic of every kernel, counted.
