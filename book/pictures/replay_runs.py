"""Runs that chapter 6 compares: a prefix that comes from a rebuilt cache, and how far what follows it is off."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import fp4kv
import numpy as np
from jaxtyping import Float64, Int
from labkit.replay import LayerKind, Network, Rows, Run, cache_of
from labkit.replay.hybrid_task import RecordsTask, records_task

TOKENS: Final = 512
RECORDS: Final = 32
QUESTIONS_AT: Final = TOKENS - 2 * RECORDS
"""Where the questions begin: one hit ends here, so that all answers come after it."""


class Effect(NamedTuple):
    """What a changed cache does to the logits of the tokens after it."""

    logit_error: float
    """Root mean square of the change, over the standard deviation of the logits."""

    divergence: float
    """Kullback-Leibler divergence of the next-token distributions, in nats, mean over tokens."""

    agreement: float
    """Share of tokens with the same most likely next token."""


class Changed:
    """A network whose cached rows pass through a function of layer, rows and positions."""

    def __init__(self, network: Network, change: Callable[[int, Rows], Rows]) -> None:
        self.network, self.kinds, self.window, self.change = network, network.kinds, network.window, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def rows(self, layer: int, hidden: Float64[np.ndarray, "n width"], positions: Int[np.ndarray, " n"]) -> Rows:
        """Return the network's rows after the change."""
        return self.change(layer, self.network.rows(layer, hidden, positions))


def tasks(n: int) -> list[RecordsTask]:
    """Return the prompts of this chapter: 32 records in 512 tokens of a play, asked at the end."""
    return [records_task(seed, TOKENS, RECORDS) for seed in range(n)]


def global_rows(network: Network, run: Run, hit: int) -> dict[int, Rows]:
    """Return what is kept of a cold run: the rows of its global layers."""
    cache = cache_of(run, network, hit)
    return {layer: cache[layer] for layer, kind in enumerate(network.kinds) if kind is LayerKind.GLOBAL}


def continue_from(
    network: Network, cache: Sequence[Rows], tokens: Int[np.ndarray, " T"], hit: int
) -> Float64[np.ndarray, "n vocabulary"]:
    """Return the logits of the tokens from `hit` on, after a prefix of which only the cache is known."""
    fed = np.arange(hit, len(tokens))
    hidden = network.embed(tokens[fed])
    for layer, kind in enumerate(network.kinds):
        new = network.rows(layer, hidden, fed)
        rows = Rows(*(np.concatenate(pair, axis=1) for pair in zip(cache[layer], new, strict=True)))
        first = len(tokens) - rows.keys.shape[1]
        seen = fp4kv.window_mask(fed, np.arange(first, len(tokens)), network.window)
        hidden = network.attend(layer, hidden, fed, rows, seen if kind is LayerKind.WINDOW else None)
    return network.logits(hidden)


def effect(logits: Float64[np.ndarray, "n vocabulary"], cold: Float64[np.ndarray, "n vocabulary"]) -> Effect:
    """Compare logits with those of a cold run."""
    right, found = log_softmax(cold), log_softmax(logits)
    return Effect(
        logit_error=float(np.sqrt(((logits - cold) ** 2).mean() / cold.var())),
        divergence=float((np.exp(right) * (right - found)).sum(axis=-1).mean()),
        agreement=float((logits.argmax(axis=-1) == cold.argmax(axis=-1)).mean()),
    )


def mean_effect(effects: Sequence[Effect]) -> Effect:
    """Return the mean of each number."""
    return Effect(*map(float, np.mean(effects, axis=0)))


def log_softmax(logits: Float64[np.ndarray, "n vocabulary"]) -> Float64[np.ndarray, "n vocabulary"]:
    """Return the logarithms of the probabilities."""
    lowered = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(lowered - np.log(np.exp(lowered).sum(axis=-1, keepdims=True)))


def recall(logits: Float64[np.ndarray, "n vocabulary"], task: RecordsTask, first: int = 0) -> float:
    """Return the share of questions that are answered right; `first` is the position of the first logits."""
    return float((logits[task.questions - first].argmax(axis=-1) == task.answers).mean())


def key_error(cache: Rows, cold: Rows) -> float:
    """Return how far the keys of one layer are from those of a cold run, relative to them."""
    return float(np.linalg.norm(cache.keys - cold.keys) / np.linalg.norm(cold.keys))
