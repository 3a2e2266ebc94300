"""Where a cache bears four bits: the same error in window layers and in global layers, and in the index."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from labkit.replay import LayerKind, Rows, cache_of, swa_forward
from labkit.replay.hybrid import load_hybrid
from labkit.replay.hybrid_index import BLOCK_TOKENS, CoarseIndex, IndexFormat
from labkit.replay.hybrid_task import RecordsTask
from labkit.schemes import SCHEMES, Scheme

from pictures import replay_runs as runs

N_TASKS: Final = 10
FORMATS: Final = ("FP8, UE8M0 per 32", "E2M1, E4M3 per 16")
WHERE: Final = {"window layers": LayerKind.WINDOW, "global layers": LayerKind.GLOBAL}
HIT, AFTER, GROUP = 256, 31, 16
"""Rows are damaged in a prefix of 256 tokens; the 31 tokens that can read the last of them are compared."""


class Placed(NamedTuple):
    """One format in one kind of layer, averaged over prompts."""

    scheme: str
    where: str
    effect: runs.Effect
    recall: float


class Chosen(NamedTuple):
    """An index format against the keys themselves."""

    format: str
    overlap: float
    """Share of the blocks picked by exact keys that are picked by the copies too."""

    effect: runs.Effect
    recall: float


def of_formats(n_tasks: int = N_TASKS) -> tuple[float, list[Placed]]:
    """Return the recall of the exact cache, and the effect of each format in each kind of layer."""
    network, prompts = load_hybrid(), runs.tasks(n_tasks)
    cold = [swa_forward(network, task.tokens).logits for task in prompts]
    by_name = {scheme.name: scheme for scheme in SCHEMES}
    found = []
    for name in FORMATS:
        for where, kind in WHERE.items():
            layers = {layer for layer, each in enumerate(network.kinds) if each is kind}
            changed = runs.Changed(network, rounding(by_name[name], layers))
            logits = [swa_forward(changed, task.tokens).logits for task in prompts]
            found.append(Placed(name, where, *_summary(logits, cold, prompts)))
    return float(np.mean([runs.recall(*pair) for pair in zip(cold, prompts, strict=True)])), found


def rounding(scheme: Scheme, layers: set[int]) -> Any:
    """Return a change of rows: keys and values of some layers pass through a format."""

    def change(layer: int, rows: Rows) -> Rows:
        return Rows(*(_round_trip(scheme, array) for array in rows)) if layer in layers else rows

    return change


def _round_trip(scheme: Scheme, x: np.ndarray) -> np.ndarray:
    by_row = x.reshape(-1, x.shape[-1]).astype(np.float32)
    return np.asarray(scheme.round_trip(by_row), np.float64).reshape(x.shape)


def _summary(
    logits: Sequence[np.ndarray], cold: Sequence[np.ndarray], prompts: Sequence[RecordsTask]
) -> tuple[runs.Effect, float]:
    effects = [
        runs.effect(found[task.text_positions], right[task.text_positions])
        for found, right, task in zip(logits, cold, prompts, strict=True)
    ]
    recall = [runs.recall(*pair) for pair in zip(logits, prompts, strict=True)]
    return runs.mean_effect(effects), float(np.mean(recall))


def of_doubled_scale(n_tasks: int = 4, n_rows: int = 16) -> dict[str, np.ndarray]:
    """Return the logit errors after one scale of one cached row was doubled, for rows among the last W - 1.

    One entry for each prompt, layer of the kind, and row; keys and values of one head, the first 16 channels.
    """
    network = load_hybrid()
    found: dict[str, list[float]] = {where: [] for where in WHERE}
    for number, task in enumerate(runs.tasks(n_tasks)):
        tokens = task.tokens[: HIT + AFTER]
        run = swa_forward(network, tokens)
        cache, rng = cache_of(run, network, HIT), np.random.default_rng(number)
        ages = rng.permutation(network.window - 1)[:n_rows] + 1
        for where, kind in WHERE.items():
            for layer in (place for place, each in enumerate(network.kinds) if each is kind):
                for age in ages:
                    logits = runs.continue_from(network, with_doubled(cache, layer, -age), tokens, HIT)
                    found[where].append(runs.effect(logits, run.logits[HIT:]).logit_error)
    return {where: np.array(errors) for where, errors in found.items()}


def with_doubled(cache: list[Rows], layer: int, row: int) -> list[Rows]:
    """Return a cache in which a group of one row has twice its scale, in key and value."""
    damaged = list(cache)
    damaged[layer] = Rows(*(array.copy() for array in cache[layer]))
    for array in damaged[layer]:
        array[0, row, :GROUP] *= 2
    return damaged


class Comparing:
    """An index of exact keys that also asks other formats, and counts what they would have picked."""

    def __init__(self, blocks: int) -> None:
        self.indices = {each: CoarseIndex(each, blocks) for each in IndexFormat}
        self.agreed: dict[IndexFormat, list[float]] = {each: [] for each in IndexFormat}

    def picks(self, queries: np.ndarray, keys: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return what exact keys pick."""
        exact = self.indices[IndexFormat.EXACT]
        right = exact.picks(queries, keys, positions)
        is_past = np.arange(right.shape[-1]) < (positions // BLOCK_TOKENS)[:, None]
        has_choice = positions // BLOCK_TOKENS > exact.blocks
        for each, index in self.indices.items():
            both = (right & index.picks(queries, keys, positions) & is_past)[:, has_choice]
            self.agreed[each].append(float(both.sum() / (right & is_past)[:, has_choice].sum()))
        return right


def of_index(n_tasks: int = N_TASKS) -> list[Chosen]:
    """Return for each format of the index how well it picks, and what that does."""
    network, prompts = load_hybrid(IndexFormat.EXACT), runs.tasks(n_tasks)
    comparing = Comparing(network.index.blocks)
    listening = dataclasses.replace(network, index=comparing)
    cold = [swa_forward(listening, task.tokens).logits for task in prompts]
    found = []
    for each in (IndexFormat.FP8, IndexFormat.E2M1):
        logits = [swa_forward(load_hybrid(each), task.tokens).logits for task in prompts]
        overlap = float(np.mean(comparing.agreed[each]))
        found.append(Chosen(each.value, overlap, *_summary(logits, cold, prompts)))
    return found


def as_table(rows: Sequence[Placed]) -> tuple[list[str], list[list[str]], str]:
    """Return head, rows and caption."""
    head = ["stored in", "where", "logit error", "divergence (nats)", "same top token", "recall"]
    body = [
        [row.scheme.replace(" per ", " per\u00a0"), row.where.replace(" ", "\u00a0"), *_cells(row.effect, row.recall)]
        for row in rows
    ]
    return head, body, "The trained hybrid with part of its cache rounded, ten prompts of 512 tokens; index in E2M1"


def index_table(rows: Sequence[Chosen]) -> tuple[list[str], list[list[str]], str]:
    """Return head, rows and caption."""
    head = ["index keys", "same blocks", "logit error", "divergence (nats)", "same top token", "recall"]
    body = [
        [row.format.replace(" per ", " per\u00a0"), f"{100 * row.overlap:.1f}\u00a0%", *_cells(row.effect, row.recall)]
        for row in rows
    ]
    return head, body, "Index keys against exact ones: eight blocks of eight tokens are picked from up to 64"


def _cells(effect: runs.Effect, recall: float) -> list[str]:
    return [
        f"{effect.logit_error:.3f}",
        f"{effect.divergence:.5f}",
        f"{100 * effect.agreement:.1f}\u00a0%",
        f"{100 * recall:.1f}\u00a0%",
    ]
