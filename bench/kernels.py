"""Compile and launch times of `labkit.cuda` on the CPU: beside NVRTC, and checked beside unchecked.

    python bench/kernels.py [--elements 1048576] [--tokens 1024] [--rounds 5]

All sides run in turn in one process, round after round, and the best round of each counts. *Compiling* is what a
student waits for the first time: NVRTC's verdict and the CPU's library, side by side, in an empty cache; beside it
stands what NVRTC alone takes to make a program, as CuPy has it do, and PTX, as our check has it do. *Launching* is
the whole call, child process and copies included; beside it stands the processor time of the child alone, which a busy
machine does not change much. Each launch's result is compared before it is timed.
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from fp4kv.kernels import (
    DECODE_ATTENTION,
    DEQUANTISE,
    QUANTISE_PACK,
    decode_attention,
    dequantise_packed,
    quantise_pack,
)
from labkit import cache, cuda
from labkit.cuda import build, nvrtc
from labkit.launches import Launch, plan_decode_attention, plan_dequantise, plan_quantise_pack, run

SOURCES = {"quantise_pack": QUANTISE_PACK, "dequantise": DEQUANTISE, "decode_attention": DECODE_ATTENTION}
MOST_TO_NVRTC, MOST_TO_UNCHECKED, SMALLEST_S = 2.0, 1.5, 0.060
TOLERANCE = 1e-4  # of attention in float32 over 1,024 tokens; what is timed must compute the right thing, no more
HEADS, KV_HEADS, WIDTH = 8, 2, 64
PROGRAM = "sm_80"


@dataclass
class Best:
    """The best of several rounds: seconds of the clock, and of the child's processor."""

    clock_s: float = float("inf")
    processor_s: float = float("inf")

    def time(self, work: Callable[[], object]) -> None:
        """Run the work once more."""
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        work()
        self.clock_s = min(self.clock_s, time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.processor_s = min(self.processor_s, spent)


def main() -> None:
    """Print the tables."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--elements", type=int, default=1 << 20)
    arguments.add_argument("--tokens", type=int, default=1024)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    load = os.getloadavg()[0]
    print(f"{cuda.what_runs_here()}\nbest of {options.rounds} rounds, {os.cpu_count()} cores, load {load:.1f} before\n")
    build.require_platform()
    build.warm_up()
    show_compiling(options.rounds)
    show_launching(options.elements, options.tokens, options.rounds)
    show_smallest(options.rounds)


def show_compiling(rounds: int) -> None:
    """Print for each source NVRTC's own time, ours in an empty cache, and ours once it is there."""
    print(f"compiling          {'NVRTC':>12} {'labkit.cuda':>12} {'ratio':>6} {'again':>9}   {'NVRTC to PTX':>12}")
    for name, source in SOURCES.items():
        alone, ours, again, to_ptx = Best(), Best(), Best(), Best()
        for _ in range(rounds):
            if nvrtc.is_installed():
                alone.time(lambda source=source: nvrtc.judge(source, architecture=PROGRAM))  # type: ignore[misc]
                to_ptx.time(lambda source=source: nvrtc.judge(source))  # type: ignore[misc]
            with tempfile.TemporaryDirectory() as folder:
                os.environ[cache.VARIABLE] = folder
                for best in (ours, again):
                    best.time(lambda source=source: cuda.RawModule(code=source).compiled(True))  # type: ignore[misc]
                del os.environ[cache.VARIABLE]
        ratio = ours.clock_s / alone.clock_s
        times = f"{alone.clock_s:10.3f} s {ours.clock_s:10.3f} s {ratio:5.2f}x {again.clock_s:7.4f} s"
        print(f"  {name:<16} {times}   {to_ptx.clock_s:10.3f} s")
    print(f"  at most {MOST_TO_NVRTC}x is meant\n")


def show_launching(n_elements: int, n_tokens: int, rounds: int) -> None:
    """Print for each kernel what checking costs."""
    print(f"launching          {'checked':>12} {'unchecked':>12} {'ratio':>6}   processor time of the child")
    above = []
    for text, launches in (plan_quantising(n_elements), plan_dequantising(n_elements), plan_attention(n_tokens)):
        checked, unchecked = Best(), Best()
        for _ in range(rounds):
            checked.time(lambda launches=launches: run_all(launches, checked=True))  # type: ignore[misc]
            unchecked.time(lambda launches=launches: run_all(launches, checked=False))  # type: ignore[misc]
        ratio = checked.clock_s / unchecked.clock_s
        processor = f"{checked.processor_s:.3f} s, {unchecked.processor_s:.3f} s"
        print(f"  {text:<16} {checked.clock_s:10.3f} s {unchecked.clock_s:10.3f} s {ratio:5.2f}x   {processor}")
        above += [text] if ratio > MOST_TO_UNCHECKED else []
    print(f"  at most {MOST_TO_UNCHECKED}x is meant; more: {', '.join(above) or 'none'}\n")


Launches = list[tuple[cuda.RawKernel, Launch]]


def run_all(launches: Launches, checked: bool) -> None:
    """Run launches that belong together."""
    for kernel, launch in launches:
        run(kernel, launch, checked=checked)


def plan_quantising(n_elements: int) -> tuple[str, Launches]:
    """Return the launch of `quantise_pack`, run once and compared."""
    x = np.random.default_rng(0).normal(size=(n_elements // WIDTH, WIDTH)).astype(np.float32)
    launch, written = plan_quantise_pack(x)
    launches: Launches = [(cuda.RawKernel(QUANTISE_PACK, launch.kernel), launch)]
    run_all(launches, checked=True)
    if not all(map(np.array_equal, written, quantise_pack(x))):
        raise ValueError("quantise_pack: expected the reference's bytes, got others")
    return "quantise_pack", launches


def plan_dequantising(n_elements: int) -> tuple[str, Launches]:
    """Return the launch of `dequantise`, run once and compared."""
    x = np.random.default_rng(1).normal(size=(n_elements // WIDTH, WIDTH)).astype(np.float32)
    packed, scales = quantise_pack(x)
    launch, written = plan_dequantise(packed, scales)
    launches: Launches = [(cuda.RawKernel(DEQUANTISE, launch.kernel), launch)]
    run_all(launches, checked=True)
    if not np.array_equal(written, dequantise_packed(packed, scales)):
        raise ValueError("dequantise: expected the reference's values, got others")
    return "dequantise", launches


def plan_attention(n_tokens: int) -> tuple[str, Launches]:
    """Return both launches of `decode_attention`, run once and compared."""
    rng = np.random.default_rng(2)
    q = rng.normal(size=(1, HEADS, WIDTH)).astype(np.float32)
    k, v = rng.normal(size=(2, 1, KV_HEADS, n_tokens, WIDTH)).astype(np.float32)
    cached = (*quantise_pack(k), *quantise_pack(v), np.array([n_tokens], np.int32))
    planned, output = plan_decode_attention(q, *cached, n_parts=4)
    module = cuda.RawModule(code=DECODE_ATTENTION)
    launches = [(module.get_function(launch.kernel), launch) for launch in planned]
    run_all(launches, checked=True)
    if not np.allclose(output, decode_attention(q, *cached), atol=TOLERANCE):
        raise ValueError("decode_attention: expected the reference within its tolerance, got something else")
    return "decode_attention", launches


def show_smallest(rounds: int) -> None:
    """Print the time of a launch of one thread."""
    kernel = cuda.RawKernel('extern "C" __global__ void one(int* x) { x[0] = 1; }', "one")
    x, best = np.zeros(1, np.int32), Best()
    for _ in range(4 * rounds):
        best.time(lambda: kernel((1,), (1,), (x,)))
    print(f"smallest launch {1e3 * best.clock_s:.1f} ms; at most {1e3 * SMALLEST_S:.0f} ms is meant")


if __name__ == "__main__":
    main()
