"""Seconds of the attention-error sweep, beside those of plain loops in float64.

    python bench/attention.py [--contexts 1024 2048 4096 8192] [--heads 8] [--queries 16] [--width 128]

The sweep is `attention_error_sweep`: the baseline and eight formats, in keys, values or both, for every context.
The loops compute the same errors with Python's float, number by number. They would take minutes, so they get one
query of one head on the smallest context, and their time is scaled by the products that are left out: their work is
the same for each head, query and token. They read caches that were quantised before, and only the sweep's time
includes that. The sweep is timed only after its errors on that part were found to be those of the loops.

`make bench` gives NumPy's matrix products one thread: two, on two cores that others use too, wait for each other.
"""

import argparse
import math
import operator
import os
import resource
import time
from itertools import product
from typing import NamedTuple

import numpy as np
from fp4kv import attention_error_sweep
from labkit.schemes import SCHEMES, Placement, SweepRow

TOLERANCE = 1e-9  # relative; both sides are float64 and differ by the order of at most 10,000 additions of 2^-53
LIMIT_S, LIMIT_BYTES = 20, 2 * 10**9
Rows = list[list[float]]


class Cache(NamedTuple):
    """Queries, keys and values of some heads."""

    q: np.ndarray
    keys: np.ndarray
    values: np.ndarray


def main() -> None:
    """Print the tables."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--contexts", type=int, nargs="+", default=[1024, 2048, 4096, 8192])
    arguments.add_argument("--heads", type=int, default=8)
    arguments.add_argument("--queries", type=int, default=16)
    arguments.add_argument("--width", type=int, default=128)
    options = arguments.parse_args()
    print(
        f"{len(SCHEMES)} schemes x {len(Placement)} placements, {options.heads} heads of width {options.width}, "
        f"{options.queries} queries each, {os.cpu_count()} cores\n"
    )
    per_product = time_of_loops(make_cache(1, 1, min(options.contexts), options.width))
    sweep_s = loops_s = 0.0
    print("context    sweep       loops, scaled   ratio")
    for context in options.contexts:
        cache = make_cache(options.heads, options.queries, context, options.width)
        start = time.perf_counter()
        rows = attention_error_sweep(*cache)
        seconds = time.perf_counter() - start
        scaled = per_product * options.heads * options.queries * context
        show_times(f"{context:,}", seconds, scaled)
        sweep_s, loops_s = sweep_s + seconds, loops_s + scaled
    show_times("all", sweep_s, loops_s)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"\nlimits: {sweep_s:.1f} s of {LIMIT_S} s, and {peak / 1e9:.2f} GB of {LIMIT_BYTES / 1e9:.0f} GB at the peak"
    )
    show_errors(rows, options.contexts[-1])


def make_cache(heads: int, queries: int, tokens: int, width: int) -> Cache:
    """Return Gaussian queries, keys and values."""
    rng = np.random.default_rng(tokens)
    shapes = ((heads, queries, width), (heads, tokens, width), (heads, tokens, width))
    return Cache(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))


def time_of_loops(part: Cache) -> float:
    """Return the loops' seconds for each query and token of a head, after both sides agreed on this part."""
    q, keys, values = (x[0].astype(np.float64).tolist() for x in part)
    decoded = {
        scheme.name: [scheme.round_trip(x)[0].astype(np.float64).tolist() for x in part[1:]] for scheme in SCHEMES
    }
    start = time.perf_counter()
    errors = sweep_with_loops(q, keys, values, decoded)
    seconds = time.perf_counter() - start
    for row, theirs in zip(attention_error_sweep(*part), errors, strict=True):
        if not math.isclose(row.error, theirs, rel_tol=TOLERANCE):
            raise SystemExit(f"{row.scheme}, {row.placement.value}: expected {theirs} as in the loops, got {row.error}")
    print(
        f"both sides agree on one query of one head over {len(keys):,} tokens; the loops took {seconds:.2f} s for it\n"
    )
    return seconds / len(keys)


def sweep_with_loops(q: Rows, keys: Rows, values: Rows, decoded: dict[str, list[Rows]]) -> list[float]:
    """Return the relative error for each scheme and placement, one head."""
    exact = [attend_with_loops(query, keys, values) for query in q]
    size = sum(x * x for output in exact for x in output)
    errors = []
    for (some_keys, some_values), placement in product(decoded.values(), Placement):
        k = keys if placement is Placement.VALUES else some_keys
        v = values if placement is Placement.KEYS else some_values
        outputs = [attend_with_loops(query, k, v) for query in q]
        square = sum(
            (x - y) ** 2 for one, other in zip(outputs, exact, strict=True) for x, y in zip(one, other, strict=True)
        )
        errors.append(math.sqrt(square / size))
    return errors


def attend_with_loops(query: list[float], keys: Rows, values: Rows) -> list[float]:
    """Return the output of one query."""
    logits = [sum(map(operator.mul, query, key)) / math.sqrt(len(query)) for key in keys]
    largest = max(logits)
    weights = [math.exp(logit - largest) for logit in logits]
    total = sum(weights)
    return [sum(map(operator.mul, weights, channel)) / total for channel in zip(*values, strict=True)]


def show_times(context: str, sweep_s: float, loops_s: float) -> None:
    """Print one line of the table of times."""
    print(f"{context:<8} {sweep_s:7.2f} s   {loops_s:11.1f} s   {loops_s / sweep_s:6.0f}x")


def show_errors(rows: list[SweepRow], context: int) -> None:
    """Print what the sweep found on its last context."""
    print(f"\nrelative error of the output over {context:,} tokens")
    print(f"  {'':<20} bits  {''.join(f'{placement.value:>17}' for placement in Placement)}")
    for scheme in SCHEMES:
        errors = [row.error for row in rows if row.scheme == scheme.name]
        print(f"  {scheme.name:<20} {scheme.bits_per_element:5.2f} {''.join(f'{error:17.5f}' for error in errors)}")


if __name__ == "__main__":
    main()
