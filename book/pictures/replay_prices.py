"""What V4.1's rows weigh, what policies make of a trace, and what rewriting global rows during a replay does."""

from typing import Final, NamedTuple

import fp4kv
import numpy as np
from labkit.formats import GROUP_LENGTH
from labkit.replay import LayerKind, ToyNetwork, swa_forward
from labkit.replay.costs import GLOBAL_ROWS_PER_TOKEN, V41_FLASH, WINDOW_ROW_BYTES, Policy, Request, Storage
from labkit.replay.trace import ASSUMED_MACHINE, Totals, synthetic_trace, total

from pictures.replay_looseness import Watched
from pictures.replay_runs import global_rows

STEPS: Final = (128, 256, 2048, 32_768)
E2M1_ROW_BYTES: Final = 512 // 2 + 512 // GROUP_LENGTH


def over_global(step_tokens: int) -> float:
    """Return how many times the bytes of the global rows the window takes if it is stored every so many tokens."""
    return V41_FLASH.window_state_bytes / step_tokens / V41_FLASH.global_token_bytes


def boundaries() -> tuple[list[str], list[list[str]], str]:
    """Return head, rows and caption: bytes by the step at which the window is stored."""
    head = ["window stored every", *(f"{step:,} tokens" for step in STEPS)]
    per_token = [f"{V41_FLASH.window_state_bytes / step:,.0f}" for step in STEPS]
    times = [f"{over_global(step):.2f}" if over_global(step) < 10 else f"{over_global(step):.1f}" for step in STEPS]
    body = [["bytes per token", *per_token], ["times the global rows", *times]]
    return head, body, "Derived: 2,703,360 bytes at each boundary, beside 890 bytes of global rows per token"


def four_bits_in_windows() -> dict[str, float]:
    """Return the bytes that E2M1 saves beside FP8: in the window, per request, and in global rows, per token."""
    saved_by_row = WINDOW_ROW_BYTES - E2M1_ROW_BYTES
    return {
        "saved-window": V41_FLASH.window_layers * V41_FLASH.window * saved_by_row,
        "saved-global": saved_by_row * GLOBAL_ROWS_PER_TOKEN,
    }


def rewritten(n_networks: int = 20) -> tuple[list[str], list[list[str]], str]:
    """Return head, rows and caption: how far the global rows are off that a replay of W tokens would write."""
    found = np.mean([_rewriting_errors(seed) for seed in range(n_networks)], axis=0)
    head = ["row written again", *(f"H − {age}" for age in range(8, 0, -1))]
    body = [
        [f"layer {layer}", *(f"{error:.2f}" for error in errors)] for layer, errors in zip((1, 3), found, strict=True)
    ]
    return (
        head,
        body,
        "Relative error of key rows in the global layers of window, global, window, global, W = 8; 20 networks",
    )


def _rewriting_errors(seed: int) -> np.ndarray:
    kinds, hit = (LayerKind.WINDOW, LayerKind.GLOBAL) * 2, 40
    network = ToyNetwork(window=8, seed=seed, kinds=kinds)
    tokens = np.random.default_rng(1000 + seed).integers(64, size=hit)
    run, watched = swa_forward(network, tokens), Watched(network)
    fp4kv.bounded_replay(watched, tokens, hit, 8, global_rows(network, run, hit))
    errors = []
    for layer in (1, 3):
        new = network.rows(layer, watched.inputs[layer], np.arange(hit - 8, hit)).keys[0]
        old = run.rows[layer].keys[0, -8:]
        errors.append(np.linalg.norm(new - old, axis=-1) / np.linalg.norm(old, axis=-1))
    return np.array(errors)


class Trace(NamedTuple):
    """The requests that the policies are compared on, and what each policy makes of them."""

    requests: list[Request]
    totals: dict[Policy, Totals]

    @property
    def hit_share(self) -> float:
        """Return the share of the prompts' tokens that were cached."""
        return sum(each.hit_tokens for each in self.requests) / sum(each.prompt_tokens for each in self.requests)

    @property
    def global_bytes(self) -> float:
        """Return what the global rows of all tokens that were new to the cache take."""
        return sum(each.prompt_tokens - each.hit_tokens for each in self.requests) * V41_FLASH.global_token_bytes


def of_trace(seed: int = 0) -> Trace:
    """Return the policies compared on the trace of a seed, V4.1's geometry on the assumed machine."""
    storage = Storage()
    requests = synthetic_trace(seed, storage)
    totals = {}
    for policy in Policy:
        costs = [fp4kv.replay_cost(V41_FLASH, policy, request, storage) for request in requests]
        totals[policy] = total(requests, costs, ASSUMED_MACHINE)
    return Trace(requests, totals)


NAMES: Final = {
    Policy.FULL_CACHE: "full cache, every 256",
    Policy.CHECKPOINTS: "checkpoints, every 2,048",
    Policy.EXACT_REPLAY: "exact replay",
    Policy.BOUNDED_REPLAY: "bounded replay",
}


def trace_table(trace: Trace) -> tuple[list[str], list[list[str]], str]:
    """Return head, rows and caption: what each policy stores, computes and lets wait."""
    head = [
        "policy",
        "window rows stored (GB)",
        "times the global rows",
        "tokens computed again",
        "first token, mean (ms)",
        "95 %",
    ]
    body = []
    for policy, totals in trace.totals.items():
        body.append(
            [
                NAMES[policy],
                f"{totals.bytes_stored / 1e9:.2f}",
                f"{totals.bytes_stored / trace.global_bytes:.2f}",
                f"{totals.tokens_recomputed:,}",
                f"{1e3 * totals.mean_first_token_s:.0f}",
                f"{1e3 * totals.p95_first_token_s:.0f}",
            ]
        )
    return head, body, f"{len(trace.requests)} requests of a synthetic trace on an assumed machine, V4.1's geometry"


def break_even_write(trace: Trace) -> float:
    """Return the writing speed, in bytes per second, below which bounded replay keeps disk and processor less busy.

    That is where `bytes stored / speed + window bytes loaded / reading speed` equals the time of the replayed tokens.
    """
    full, bounded = trace.totals[Policy.FULL_CACHE], trace.totals[Policy.BOUNDED_REPLAY]
    replaying = bounded.tokens_recomputed / ASSUMED_MACHINE.prefill_tokens_per_second
    loading = (full.bytes_loaded - bounded.bytes_loaded) / ASSUMED_MACHINE.read_bytes_per_second
    return full.bytes_stored / (replaying - loading)
