"""What a bounded replay is off by, what its guarantee and its estimate say of that, and what each policy costs.

    python bench/replay.py [--seeds 20]

Networks are toys of random weights, seeds 0, 1, ..., with tokens drawn from the same seed, and the trained hybrid.
Errors are those of the last W - 1 positions before the hit, the rows that a later token reads.
"""

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from fp4kv import bounded_replay, predict_replay_error, replay_cost, replay_error_bound
from jaxtyping import Float64, Int64
from labkit.replay import LayerKind, Rows, Run, ToyNetwork, cache_of, record_statistics, swa_forward
from labkit.replay.costs import V41_FLASH, Machine, Policy, Storage
from labkit.replay.hybrid import load_hybrid
from labkit.replay.hybrid_task import records_task
from labkit.replay.statistics import ReadableNetwork
from labkit.replay.trace import ASSUMED_MACHINE, ASSUMED_SHARED_DISK, synthetic_trace, total

Errors = Float64[np.ndarray, " layers"]
EXACT = 1e-12  # of the largest hidden vector: what float64 leaves of rows that are exact
PICTURE = {"layers": 4, "window": 8, "width": 32, "output_scale": 0.8}
PUBLISHED = {8: (0, 0.32, 0.56, 0.86), 16: (0, 0, 0.09, 0.18), 24: (0, 0, 0, 0.004)}


class Watched:
    """A network that keeps what its layers put out."""

    def __init__(self, network: ReadableNetwork) -> None:
        self.kinds, self.window = network.kinds, network.window
        self.embed, self.rows, self.logits = network.embed, network.rows, network.logits
        self._attend = network.attend
        self.outputs: list[np.ndarray] = []

    def attend(self, layer, hidden, positions, rows, is_visible=None):  # type: ignore[no-untyped-def]
        """Return the output of the layer, and keep it."""
        self.outputs.append(self._attend(layer, hidden, positions, rows, is_visible))
        return self.outputs[-1]


class Case(NamedTuple):
    """A network, a text, and a cold run of it; the hit is the whole text."""

    network: ReadableNetwork
    tokens: Int64[np.ndarray, " T"]
    cold: Run

    def replay(self, replay_tokens: int) -> tuple[list[Rows], Float64[np.ndarray, "layers n"]]:
        """Return the rebuilt rows, and how far each layer's output is off for the last W - 1 tokens."""
        watched, kinds = Watched(self.network), enumerate(self.network.kinds)
        global_rows = {layer: self.cold.rows[layer] for layer, kind in kinds if kind is LayerKind.GLOBAL}
        cache = bounded_replay(watched, self.tokens, len(self.tokens), replay_tokens, global_rows)
        tail = slice(1 - self.network.window, None)
        off = np.stack(watched.outputs)[:, tail] - self.cold.hidden[1:, tail]
        return cache, np.linalg.norm(off, axis=-1)


def cases(seeds: int, **settings: float) -> list[Case]:
    """Return networks with a text of 2 LW tokens and 16."""
    made = []
    for seed in range(seeds):
        network = ToyNetwork(seed=seed, **settings)  # type: ignore[arg-type]
        n_tokens = 2 * len(network.kinds) * network.window + 16
        tokens = np.random.default_rng(seed).integers(0, 64, n_tokens)
        made.append(Case(network, tokens, swa_forward(network, tokens)))
    return made


def key_errors(case: Case, replay_tokens: int) -> Errors:
    """Return ‖rebuilt keys - cold keys‖ / ‖cold keys‖ of the last W - 1 rows of each layer, in the Frobenius norm."""
    cold = cache_of(case.cold, case.network, len(case.tokens))
    rebuilt, _ = case.replay(replay_tokens)
    pairs = zip(rebuilt, cold, strict=True)
    return np.array([np.linalg.norm(got.keys - rows.keys) / np.linalg.norm(rows.keys) for got, rows in pairs])


def show_picture(seeds: int) -> None:
    """Print the error of the key rows by layer."""
    print(f"relative error of the last W - 1 key rows by layer, mean of {seeds} networks {PICTURE}")
    made = cases(seeds, **PICTURE)
    for replay_tokens, published in PUBLISHED.items():
        found = np.mean([key_errors(case, replay_tokens) for case in made], axis=0)
        ours, theirs = (" ".join(f"{value:6.3f}" for value in values) for values in (found, published))
        print(f"  n = {replay_tokens:2}: {ours}   published, of another generator: {theirs}")


def show_bound_and_estimate(seeds: int) -> None:
    """Print for each layer's output the guarantee and the estimate, over the measured error; all pooled as RMS."""
    print("\nRMS over networks and positions, by layer: measured / guarantee over it / estimate over it")
    settings = [(4, 8, scale, n) for scale in (0.1, 0.3, 1.0) for n in (1, 2, 3)]
    settings += [(4, 16, 0.3, n) for n in (1, 2, 3)] + [(16, 8, 0.3, 1), (40, 8, 1.0, 1)]
    for layers, window, scale, windows in settings:
        made = cases(seeds, layers=layers, window=window, output_scale=scale)
        step = max(1, layers // 8)
        print(f"  L = {layers}, W = {window}, output scale {scale}, n = {windows}W, every {step} layers")
        show_ratios(made, windows * window, step)
    print("  the hybrid with dense global layers, trained, 5 texts of 512 tokens; its lengths, then as above")
    network, trained = load_hybrid(index=None), []
    for seed in range(5):
        tokens = records_task(seed=seed, tokens=512, records=32).tokens
        trained.append(Case(network, tokens, swa_forward(network, tokens)))
    print(f"    {'length':9} {line(np.linalg.norm(trained[0].cold.hidden[1:], axis=-1).mean(axis=-1))}")
    for replay_tokens in (network.window, 2 * (network.window - 1)):
        print(f"    n = {replay_tokens}")
        show_ratios(trained, replay_tokens, step=1)


def show_ratios(made: Sequence[Case], replay_tokens: int, step: int) -> None:
    """Print what was measured, and guarantee and estimate over it, for every so many layers."""
    measured, bound, estimate = pooled(made, replay_tokens)
    is_exact = measured < EXACT * np.linalg.norm(made[0].cold.hidden, axis=-1).max()
    shown = np.where(is_exact, np.nan, measured)
    for name, values in (("measured", shown), ("guarantee", bound / shown), ("estimate", estimate / shown)):
        print(f"    {name:9} {line(values[step - 1 :: step])}")


def pooled(made: Sequence[Case], replay_tokens: int) -> tuple[Errors, Errors, Errors]:
    """Return measured errors, guarantee and estimate of each layer's output: the RMS over networks and positions."""
    squares = []
    for case in made:
        tail = slice(1 - case.network.window, None)
        statistics = record_statistics(case.network, case.cold, len(case.tokens), replay_tokens)
        bound, estimate = replay_error_bound(statistics), predict_replay_error(statistics)
        found = (case.replay(replay_tokens)[1], bound[1:, tail], estimate[1:, tail])
        squares.append([(errors**2).mean(axis=-1) for errors in found])
    measured, bound, estimate = np.sqrt(np.mean(squares, axis=0))
    return measured, bound, estimate


def show_storage() -> None:
    """Print what the window state takes, beside the global rows between two stored boundaries."""
    state, row = V41_FLASH.window_state_bytes, V41_FLASH.global_token_bytes
    print(f"\n{V41_FLASH.name}: {row:g} B of global rows per token, {state:,} B of window rows per boundary")
    for step in (128, 256, 2048, 32768):
        print(f"  stored every {step:6,} tokens: {state / (step * row):6.2f} times the global rows")


def show_policies() -> None:
    """Print what each policy makes of the trace."""
    storage = Storage()
    trace = synthetic_trace(seed=0, storage=storage)
    prompts, hits = sum(r.prompt_tokens for r in trace), sum(r.hit_tokens for r in trace)
    print(f"\n{len(trace)} requests, {prompts:,} tokens in prompts, {hits / prompts:.0%} of them hits, seed 0")
    print(f"  {'':16} {'stored GB':>9} {'read GB':>8} {'recomputed':>11}   first token ms (mean, 95 %)   busy s")
    for name, machine in (("own disk", ASSUMED_MACHINE), ("shared disk", ASSUMED_SHARED_DISK)):
        print(f"  {name}: {describe(machine)}")
        for policy in Policy:
            costs = [replay_cost(V41_FLASH, policy, request, storage) for request in trace]
            found = total(trace, costs, machine)
            amounts = f"{found.bytes_stored / 1e9:9.2f} {found.bytes_loaded / 1e9:8.2f} {found.tokens_recomputed:11,}"
            waits = f"{1e3 * found.mean_first_token_s:7.1f} {1e3 * found.p95_first_token_s:7.1f}"
            busy = sum(cost.seconds(machine) for cost in costs)
            print(f"  {policy.name:16} {amounts}   {waits} {busy:21.1f}")


def describe(machine: Machine) -> str:
    """Return the assumptions in words."""
    rate, read, write = machine
    return f"{rate:,.0f} tokens/s prefilled, {read / 1e9:g} GB/s read, {write / 1e9:g} GB/s written; assumed"


def line(values: Sequence[float] | np.ndarray) -> str:
    """Return numbers in columns; a dash where there is nothing to compare, since the rows are exact."""
    return " ".join(f"{'-':>8}" if np.isnan(value) else f"{value:8.3g}" for value in values)


def main() -> None:
    """Print the tables."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--seeds", type=int, default=20)
    options = arguments.parse_args()
    show_picture(options.seeds)
    show_bound_and_estimate(options.seeds)
    show_storage()
    show_policies()


if __name__ == "__main__":
    main()
