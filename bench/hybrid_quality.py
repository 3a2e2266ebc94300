"""What a change does to the trained hybrid: how its next-token distributions move, and what it still recalls."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from labkit.replay import LayerKind, Network, Rows
from labkit.replay.hybrid_task import RecordsTask
from scipy import stats

CONFIDENCE = 0.95
Store = Callable[[int, Rows], Rows]


class Quality(NamedTuple):
    """One sequence, changed against unchanged, apart for tokens before a byte of text and for questions."""

    recall: float
    text_kl: float
    question_kl: float
    text_agreement: float
    question_agreement: float


def forward(network: Network, tokens: np.ndarray, store: Store | None = None) -> np.ndarray:
    """Return the logits of a cold run in which every layer reads its rows as `store` gives them back."""
    positions = np.arange(len(tokens))
    age = positions[:, None] - positions
    in_window = (age >= 0) & (age < network.window)
    hidden = network.embed(tokens)
    for layer, kind in enumerate(network.kinds):
        rows = network.rows(layer, hidden, positions)
        if store is not None:
            rows = store(layer, rows)
        hidden = network.attend(layer, hidden, positions, rows, in_window if kind is LayerKind.WINDOW else None)
    return network.logits(hidden)


def quality(task: RecordsTask, cold: np.ndarray, changed: np.ndarray) -> Quality:
    """Return how a sequence's logits have moved."""
    kl, same = divergence(cold, changed), cold.argmax(axis=-1) == changed.argmax(axis=-1)
    text, asked = task.text_positions, task.questions
    recall = np.mean(changed[asked].argmax(axis=-1) == task.answers)
    return Quality(*map(float, (recall, kl[text].mean(), kl[asked].mean(), same[text].mean(), same[asked].mean())))


def divergence(cold: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """Return KL(cold || changed) of the next-token distributions at each position, in nats."""
    p, q = log_softmax(cold), log_softmax(changed)
    return np.asarray((np.exp(p) * (p - q)).sum(axis=-1))


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Return log-probabilities."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def relative(difference: np.ndarray, reference: np.ndarray) -> float:
    """Return the norm of a difference over that of what it differs from."""
    return float(np.linalg.norm(difference) / np.linalg.norm(reference))


def interval(values: Sequence[float]) -> dict[str, float]:
    """Return the mean and half the width of its 95 % interval by Student's t, over seeds."""
    array = np.asarray(values, float)
    spread = array.std(ddof=1) / np.sqrt(len(array))
    half = spread * stats.t.ppf((1 + CONFIDENCE) / 2, len(array) - 1)
    return {"mean": rounded(array.mean()), "half": rounded(half)}


def summary(records: Iterable[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the mean and interval of each quantity; a sequence that has none of it (NaN) does not count."""
    columns: dict[str, list[float]] = {}
    for record in records:
        for name, value in record.items():
            if not np.isnan(value):
                columns.setdefault(name, []).append(value)
    return {name: interval(values) for name, values in columns.items() if len(values) > 1}


def rounded(value: Any) -> float:
    """Return a number with four significant digits, as it is recorded."""
    return float(f"{value:.4g}")
