"""On a GPU: bandwidth of the FP4 kernels beside a copy, and decode attention over FP16, FP8 and FP4 beside PyTorch's.

    python bench/kernels_gpu.py [--contexts 1024 … 131072] [--heads 32] [--kv-heads 8] [--width 128] [--rounds 50]

Without a GPU it says so and ends. The three decode kernels are one kernel, fp4kv's, with three ways to load a tile, so
they differ in the bytes of the cache alone; PyTorch's is its `scaled_dot_product_attention` in float16. Each of ours is
compared with float64 before it is timed. Caches lie in as many copies, taken in turn, as it takes to overflow the GPU's
own cache: in a model, other layers would have emptied it. The best cut into parts counts for each context. Launches
follow each other without a wait; where the context is short, Python launches more slowly than the GPU computes, and
that is the time.
"""

import argparse
import datetime
import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from fp4kv import attend
from fp4kv.kernel_bytes import dequantise_traffic, quantise_pack_traffic
from fp4kv.kernels import DECODE_ATTENTION, DEQUANTISE, QUANTISE_PACK, dequantise_packed, quantise_pack
from labkit import cuda
from labkit.cuda.gpu import cupy_module
from labkit.launches import Launch, plan_decode_attention, plan_dequantise, plan_quantise_pack, run

COLD_BYTES = 256 * 2**20  # more than the cache of any GPU so far
PART_TOKENS = (128, 512, 2048)
TOLERANCE = 1e-4  # some 400 roundings by 2^-24, over 300 tokens of width 64, of numbers below 4
REPEATS = 5

LOAD_FP8 = """{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * width);
    scales += row * (width / 32);
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 4; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const float scale = __uint_as_float((unsigned int)scales[w / 8] << 23);
        const int t = 4 * w / width, d = 4 * w % width;
        for (int i = 0; i < 4; ++i) {
            const int j = (i + threadIdx.x / 8) % 4;
            const unsigned int byte = word >> 8 * j & 255u;
            const float size = scale * decode_e4m3(byte & 127u);
            tile[t * (width + 1) + d + j] = byte > 127u ? -size : size;
        }
    }
}
"""
LOAD_FP16 = """{
    const unsigned int* words = reinterpret_cast<const unsigned int*>(packed + row * (2 * width));
    for (int w = threadIdx.y * 32 + threadIdx.x; w < n_tokens * width / 2; w += blockDim.y * 32) {
        const unsigned int word = words[w];
        const int t = 2 * w / width, d = 2 * w % width;
        for (int i = 0; i < 2; ++i) {
            const int j = (i + threadIdx.x / 16) % 2;
            const unsigned int bits = word >> 16 * j & 0xffffu;
            const float size = __uint_as_float((bits & 0x7fffu) << 13) * __uint_as_float(239u << 23);    // times 2^112
            tile[t * (width + 1) + d + j] = bits > 0x7fffu ? -size : size;
        }
    }
}
"""
Cache = tuple[Any, Any]


class Format(NamedTuple):
    """A cache format: how a tile is loaded (None: as in fp4kv), how values are stored, and the bytes of both arrays."""

    load: str | None
    store: Callable[[np.ndarray], Cache]
    load_back: Callable[..., np.ndarray]
    shares: tuple[float, float]


def store_fp8(x: np.ndarray) -> Cache:
    """Return E4M3 bytes and one UE8M0 byte per 32."""
    groups = x.reshape(*x.shape[:-1], -1, 32)
    exponent = np.ceil(np.log2(np.abs(groups).max(axis=-1, keepdims=True) / 448)).astype(np.int32)
    values = np.ldexp(groups, -exponent).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    return values.reshape(x.shape), (exponent[..., 0] + 127).astype(np.uint8)


def load_back_fp8(values: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Return what E4M3 bytes and their exponents stand for."""
    return np.ldexp(
        values.view(ml_dtypes.float8_e4m3fn).astype(np.float32), exponents.astype(np.int32).repeat(32, axis=-1) - 127
    )


def store_fp16(x: np.ndarray) -> Cache:
    """Return the bytes of float16 numbers, and no scales."""
    return x.astype(np.float16).view(np.uint8), np.zeros(1, np.uint8)


FORMATS = {
    "FP16": Format(LOAD_FP16, store_fp16, lambda stored, _: stored.view(np.float16).astype(np.float32), (2, 0)),
    "FP8": Format(LOAD_FP8, store_fp8, load_back_fp8, (1, 1 / 32)),
    "FP4": Format(None, quantise_pack, dequantise_packed, (1 / 2, 1 / 16)),
}


def source(load: str | None) -> str:
    """Return the text of decode attention with another way to load a tile."""
    if load is None:
        return DECODE_ATTENTION
    code, n_changed = re.subn(
        r"(?<=int width\))\n\{\n.*?\n\}\n", lambda _: "\n" + load, DECODE_ATTENTION, count=1, flags=re.S
    )
    assert n_changed == 1
    return code


def plan(
    q: Any, keys: Cache, values: Cache, lengths: Any, n_tokens: int, kv_heads: int, n_parts: int
) -> tuple[tuple[Launch, Launch], Any]:
    """Return the two launches over a cache of any format: those of FP4 with other arrays."""
    batch, _, width = q.shape
    sizes = (batch, kv_heads, n_tokens, width // 2), (batch, kv_heads, n_tokens, width // 16)
    shaped = tuple(type(q)(size, dtype=np.uint8) for size in sizes)
    (attention, combine), output = plan_decode_attention(q, *shaped, *shaped, lengths, n_parts=n_parts)
    attention = attention._replace(args=(q, *keys, *values, *attention.args[5:]))
    return (attention, combine), output


def agree(name: str, kernel: Callable[[str, str], Any], array: Callable[..., Any], numpy: Callable[..., Any]) -> None:
    """Stop unless a format's kernel computes what float64 does over the same cache."""
    rng = np.random.default_rng(0)
    keys, values = (FORMATS[name].store(rng.normal(size=(1, 2, 300, 64)).astype(np.float32)) for _ in range(2))
    q, lengths = rng.normal(size=(1, 8, 64)).astype(np.float32), np.array([290], np.int32)
    cache = (tuple(map(array, side)) for side in (keys, values))
    launches, output = plan(array(q), *cache, array(lengths), 300, 2, 3)
    for launch in launches:
        run(kernel(source(FORMATS[name].load), launch.kernel), launch)
    expected = attend(
        q.reshape(1, 2, 4, 64), *(FORMATS[name].load_back(*side)[:, :, :290] for side in (keys, values))
    ).reshape(q.shape)
    off = np.abs(numpy(output) - expected).max()
    if not off <= TOLERANCE:
        raise SystemExit(f"{name}: expected the output of float64 within {TOLERANCE}, got one that is {off:.1e} off")


def main() -> None:
    """Print the tables, or why there are none."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--contexts", type=int, nargs="+", default=[2**n for n in range(10, 18)])
    arguments.add_argument("--heads", type=int, default=32)
    arguments.add_argument("--kv-heads", type=int, default=8)
    arguments.add_argument("--width", type=int, default=128)
    arguments.add_argument("--rounds", type=int, default=50)
    options = arguments.parse_args()
    cupy = cupy_module()
    if cupy is None:
        print(f"Nothing to time: this needs a GPU. {cuda.what_runs_here()}")
        return
    print(f"{cuda.what_runs_here()} {datetime.datetime.now().astimezone():%Y-%m-%d}")
    for name in FORMATS:
        agree(name, cupy.RawKernel, cupy.asarray, cupy.asnumpy)
    copy_rate = show_bandwidth(cupy, options.rounds)
    show_decode(cupy, options, copy_rate)


def seconds(cupy: Any, sides: list[Callable[[], Any]], rounds: int) -> float:
    """Return the time of one side, all called in turn: the best mean of some stretches of so many rounds."""
    for side in sides:
        side()  # compiles, and warms up
    turns, times = itertools.cycle(sides), []
    for _ in range(REPEATS):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(rounds):
            next(turns)()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) / 1000 / rounds)
    return min(times)


def show_bandwidth(cupy: Any, rounds: int) -> float:
    """Print the bandwidth of quantise_pack and dequantise, and return that of a copy in bytes per second."""
    x = cupy.sin(cupy.arange(2**26, dtype=np.float32))
    there, cache = plan_quantise_pack(x)
    quantise, dequantise = cupy.RawKernel(QUANTISE_PACK, "quantise_pack"), cupy.RawKernel(DEQUANTISE, "dequantise")
    run(quantise, there)
    back, _ = plan_dequantise(*cache)
    other = cupy.empty_like(x)
    rates = {
        "copy": 2 * x.nbytes / seconds(cupy, [lambda: cupy.copyto(other, x)], rounds),
        "quantise_pack": quantise_pack_traffic(x.size).total / seconds(cupy, [lambda: run(quantise, there)], rounds),
        "dequantise": dequantise_traffic(x.size).total / seconds(cupy, [lambda: run(dequantise, back)], rounds),
    }
    print(f"\n{x.size:,} elements; least traffic over time")
    for name, rate in rates.items():
        print(f"  {name:<14} {rate / 1e9:8.0f} GB/s   {rate / rates['copy']:5.2f} of a copy")
    return rates["copy"]


def show_decode(cupy: Any, options: argparse.Namespace, copy_rate: float) -> None:
    """Print the time of one decode step of one layer and sequence for each context and format."""
    print(f"\ndecode: {options.heads} heads over {options.kv_heads} KV heads of width {options.width}, µs")
    print(f"  {'context':>8} {'torch FP16':>11}" + "".join(f"{name:>9}" for name in FORMATS) + "   FP4 read, of a copy")
    for context in options.contexts:
        times = {name: time_format(cupy, name, context, options) for name in FORMATS}
        theirs = time_torch(cupy, context, options)
        read = 2 * options.kv_heads * context * options.width * sum(FORMATS["FP4"].shares)
        shown = "".join(f"{times[name] * 1e6:9.1f}" for name in FORMATS)
        peer = f"{theirs * 1e6:11.1f}" if theirs is not None else f"{'no CUDA':>11}"
        print(f"  {context:8,} {peer}{shown}   {read / times['FP4'] / copy_rate:5.2f}")


def time_format(cupy: Any, name: str, context: int, options: argparse.Namespace) -> float:
    """Return the time of our kernel over a cache of mixed bytes, with the best of some cuts into parts."""
    heads, kv_heads, width, rounds = options.heads, options.kv_heads, options.width, options.rounds
    code = source(FORMATS[name].load)
    kernels = [cupy.RawKernel(code, kernel) for kernel in ("decode_attention", "combine_parts")]
    q, lengths = cupy.ones((1, heads, width), np.float32), cupy.full(1, context, np.int32)
    sizes = [max(1, int(kv_heads * context * width * share)) for share in FORMATS[name].shares]
    caches = [
        [(mixed_bytes(cupy, sizes[0]), cupy.full(sizes[1], 0x38, np.uint8)) for _ in range(2)]
        for _ in range(-(-COLD_BYTES // (2 * sum(sizes))))
    ]
    times = []
    for part_tokens in PART_TOKENS:
        sides = []
        for cache in caches:
            launches, _ = plan(q, *cache, lengths, context, kv_heads, max(1, context // part_tokens))
            sides.append(lambda pair=launches: [run(*both) for both in zip(kernels, pair, strict=True)])
        times.append(seconds(cupy, sides, rounds))
    return min(times)


def mixed_bytes(cupy: Any, size: int) -> Any:
    """Return bytes of all kinds, none of them NaN or infinite in any of the formats."""
    mixed = cupy.arange(size, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(24)
    return mixed.astype(np.uint8) & np.uint8(0x77)


def time_torch(cupy: Any, context: int, options: argparse.Namespace) -> float | None:
    """Return the time of PyTorch's attention in float16, None if this PyTorch has no CUDA."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    if not torch.cuda.is_available():
        return None
    shape = (1, options.kv_heads, context, options.width)
    q = torch.ones((1, options.heads, 1, options.width), dtype=torch.float16, device="cuda")
    copies = -(-COLD_BYTES // (4 * options.kv_heads * context * options.width))
    caches = [[torch.randn(shape, dtype=torch.float16, device="cuda") for _ in range(2)] for _ in range(copies)]
    sides = [lambda cache=cache: scaled_dot_product_attention(q, *cache, enable_gqa=True) for cache in caches]
    return seconds(cupy, sides, options.rounds)


if __name__ == "__main__":
    main()
