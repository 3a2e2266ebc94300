"""Elements per second of `quantise_e2m1` + pack and of dequantise, beside torchao, ml_dtypes and a memory copy.

    python bench/quantise.py [--elements 4194304] [--rounds 9]

All sides run in turn in one process, round after round, and the best round of each counts. NumPy and ml_dtypes use
one thread; torchao is eager on the CPU, once with one thread and once with every core. Before anything is timed, the
results are compared: a side that computes something else would win nothing.
"""

import argparse
import os
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch
from fp4kv import dequantise, pack_nibbles, quantise_e2m1, unpack_nibbles
from labkit.formats import E2M1_MAX, E4M3_MAX, E4M3_MIN_SUBNORMAL, GROUP_LENGTH, QuantisedE2M1, ScaleRule

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, nvfp4_quantize, per_tensor_amax_to_scale

WIDTH = 128
COPY = "memory copy"
OURS = "fp4kv"
ONE_THREAD, ALL_CORES = "torchao, 1 thread", f"torchao, {os.cpu_count()} threads"
Side = Callable[[], Any]


def main() -> None:
    """Print the tables."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--elements", type=int, default=1 << 22)
    arguments.add_argument("--rounds", type=int, default=9)
    options = arguments.parse_args()
    x = np.random.default_rng(0).normal(size=(options.elements // WIDTH, WIDTH)).astype(np.float32)
    print(f"{x.size:,} float32 elements, rows of {WIDTH}, best of {options.rounds} rounds, {os.cpu_count()} cores\n")
    for rule in ScaleRule:
        show(f"quantise_e2m1 + pack, {rule.value}", quantise_sides(x, rule), x.size, options.rounds)
    show("unpack + dequantise", dequantise_sides(x), x.size, options.rounds)
    show_memory(x)


def quantise_sides(x: np.ndarray, rule: ScaleRule) -> dict[str, Side]:
    """Return who quantises x to packed bytes and scales, by name."""
    tensor = torch.from_numpy(x)
    is_two_level = rule is ScaleRule.TENSOR_AND_GROUP

    def torchao() -> Any:
        scale = per_tensor_amax_to_scale(tensor.abs().amax()) if is_two_level else None
        return nvfp4_quantize(tensor, GROUP_LENGTH, scale)[1]

    sides = {
        OURS: lambda: pack_nibbles(quantise_e2m1(x, rule).codes),
        ONE_THREAD: with_threads(1, torchao),
        ALL_CORES: with_threads(os.cpu_count() or 1, torchao),
        "ml_dtypes": lambda: quantise_with_ml_dtypes(x, is_two_level)[1],
        COPY: x.copy,
    }
    expected = sides[OURS]()
    for name in (ONE_THREAD, "ml_dtypes"):
        agree(name, np.asarray(sides[name]()), expected)
    return sides


def dequantise_sides(x: np.ndarray) -> dict[str, Side]:
    """Return who makes float32 of packed bytes and scales, by name."""
    quantised = quantise_e2m1(x)
    packed = pack_nibbles(quantised.codes)
    scales = quantised.scales.astype(ml_dtypes.float8_e4m3fn)
    tensor = NVFP4Tensor.to_nvfp4(torch.from_numpy(x), block_size=GROUP_LENGTH)
    decoded = dequantise(quantised)
    sides = {
        OURS: lambda: dequantise_packed(packed, quantised),
        ONE_THREAD: with_threads(1, lambda: tensor.dequantize(torch.float32)),
        ALL_CORES: with_threads(os.cpu_count() or 1, lambda: tensor.dequantize(torch.float32)),
        "ml_dtypes": lambda: dequantise_with_ml_dtypes(packed, scales),
        COPY: decoded.copy,
    }
    for name in (ONE_THREAD, "ml_dtypes"):
        agree(name, np.asarray(sides[name]()), decoded)
    return sides


def dequantise_packed(packed: np.ndarray, quantised: QuantisedE2M1) -> np.ndarray:
    """Return the values of packed bytes, ours."""
    return dequantise(quantised._replace(codes=unpack_nibbles(packed)))


def quantise_with_ml_dtypes(x: np.ndarray, is_two_level: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return scales and packed bytes, every rounding a cast of ml_dtypes."""
    groups = x.reshape(-1, GROUP_LENGTH)
    amax = np.abs(groups).max(axis=-1, keepdims=True)
    t = amax.max() / np.float32(E2M1_MAX * E4M3_MAX) if is_two_level else np.float32(1)
    scales = np.clip(amax / np.float32(E2M1_MAX) / t, E4M3_MIN_SUBNORMAL, E4M3_MAX).astype(ml_dtypes.float8_e4m3fn)
    codes = (groups / (scales.astype(np.float32) * t)).astype(ml_dtypes.float4_e2m1fn).view(np.uint8).reshape(x.shape)
    return scales, codes[..., 0::2] | codes[..., 1::2] << 4


def dequantise_with_ml_dtypes(packed: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the values of packed bytes, every decoding a cast of ml_dtypes."""
    codes = np.stack([packed & 0b1111, packed >> 4], axis=-1).view(ml_dtypes.float4_e2m1fn)
    groups = codes.reshape(-1, GROUP_LENGTH).astype(np.float32) * scales.reshape(-1, 1).astype(np.float32)
    return groups.reshape(*packed.shape[:-1], -1)


def with_threads(n_threads: int, side: Side) -> Side:
    """Return a side that runs on so many of PyTorch's threads."""

    def run() -> Any:
        torch.set_num_threads(n_threads)
        return side()

    return run


def agree(name: str, theirs: np.ndarray, ours: np.ndarray) -> None:
    """Stop unless both sides computed the same but for a few elements beside a tie."""
    differing = np.count_nonzero(theirs != ours)
    if theirs.shape != ours.shape or differing > ours.size * 1e-5:
        raise SystemExit(f"{name}: expected the results of {OURS}, got {differing:,} others of {ours.size:,}")


def show(title: str, sides: dict[str, Side], n_elements: int, rounds: int) -> None:
    """Time all sides in turn and print elements per second, and our speed as a multiple of each."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(rounds):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            best[name] = min(best[name], time.perf_counter() - start)
    print(title)
    for name, seconds in best.items():
        ratio = f"   {OURS} is {seconds / best[OURS]:5.2f}x" if name != OURS else ""
        print(f"  {name:<20} {n_elements / seconds / 1e6:8.0f} M elements/s{ratio}")
    faster = min((name for name in best if name not in (OURS, COPY)), key=lambda name: best[name])
    print(f"  against the faster peer ({faster}): {best[faster] / best[OURS]:.2f}x\n")


def show_memory(x: np.ndarray) -> None:
    """Print the peak that our functions allocate at once, beside the size of their input."""
    quantised = quantise_e2m1(x)
    packed = pack_nibbles(quantised.codes)
    given = {
        "quantise_e2m1 + pack": (x.nbytes, lambda: pack_nibbles(quantise_e2m1(x).codes), 0),
        "unpack + dequantise": (
            packed.nbytes + quantised.scales.nbytes,
            lambda: dequantise_packed(packed, quantised),
            x.nbytes,
        ),
    }
    print("peak extra memory of fp4kv (of dequantise: beside its result)")
    for name, (input_bytes, side, result_bytes) in given.items():
        extra = peak_bytes(side) - result_bytes
        print(
            f"  {name:<20} {extra / 2**20:8.1f} MiB = {extra / input_bytes:.2f}x the input's {input_bytes / 2**20:.1f}"
        )


def peak_bytes(side: Side) -> int:
    """Return the most bytes that NumPy and Python held at once on behalf of one call."""
    tracemalloc.start()
    side()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


if __name__ == "__main__":
    main()
