"""What bounded replay does to a real decoder's reading: key rows, next-token distributions and perplexity."""

from typing import Any

import numpy as np
import torch
from hybrid_quality import interval, rounded
from labkit.models.decoder import Decoder, State, logits, run
from real_hybrid import (
    LAYOUT,
    WINDOW,
    exact_length,
    kept,
    relative_error,
    replayed,
    whole,
    window_layers,
    window_rows,
)
from real_recall import replay_lengths
from torch import Tensor

AFTER = 64
"""Tokens fed after the hit: as many as the window holds, so that the last sees no rebuilt row directly."""
PARTS = {"first token": slice(0, 1), "tokens 2 to 16": slice(1, 16), "tokens 17 to 64": slice(16, AFTER)}


def hit_of(decoder: Decoder) -> int:
    """Return the length of the cached prefix: room for the exact replay, and some tokens before it."""
    return exact_length(decoder, LAYOUT) + WINDOW // 2


def perplexity(decoder: Decoder, passages: Tensor) -> dict[str, Any]:
    """Return the original's and the hybrid's perplexity over whole passages; the first token is not predicted."""
    layouts = {"original": whole(decoder), "hybrid": LAYOUT}
    nats = {name: [] for name in layouts}
    for passage in passages:
        for name, layout in layouts.items():
            hidden, _ = run(decoder, layout, passage[None])
            nats[name].append(float(surprise(logits(decoder, hidden[0, :-1]), passage[1:]).mean()))
    found: dict[str, Any] = {name: _as_perplexity(values) for name, values in nats.items()}
    extra = np.subtract(nats["hybrid"], nats["original"])
    return {**found, "hybrid over original": _as_perplexity(list(extra)), "tokens": int(passages[:, 1:].numel())}


def continuation(decoder: Decoder, passages: Tensor) -> dict[str, Any]:
    """Return, for each number of replayed tokens, what differs from the cold run after a hit."""
    hit, most = hit_of(decoder), exact_length(decoder, LAYOUT)
    lengths = [0, *replay_lengths(most), most]
    records: dict[int, list[dict[str, Any]]] = {n: [] for n in lengths}
    surprises = []
    for passage in passages[:, None]:
        _, cold = run(decoder, LAYOUT, passage[:, :hit])
        stored, expected = kept(cold, LAYOUT, hit), _continued(decoder, passage, hit, cold)
        surprises.append(float(surprise(expected, passage[0, hit + 1 :]).mean()))
        for n in lengths:
            state = replayed(decoder, LAYOUT, passage, hit, n, stored) if n else stored
            got = _continued(decoder, passage, hit, state)
            records[n].append(_compared(got, expected, passage[0, hit + 1 :], surprises[-1]))
            if n:
                records[n][-1]["rows"] = _row_errors(decoder, state, cold, hit)
    return {
        "hit": hit,
        "exact length": most,
        "window layers": window_layers(decoder, LAYOUT),
        "cold perplexity": _as_perplexity(surprises),
        "replays": [{"replayed": n, **_summary(records[n])} for n in lengths],
    }


def rounding(decoder: Decoder, passage: Tensor) -> dict[str, float]:
    """Return how far the exact replay is from the cold run in float64: row keys, and the logits when token H is fed."""
    decoder, hit = decoder.double(), hit_of(decoder)
    passage = passage[None]
    _, cold = run(decoder, LAYOUT, passage[:, :hit])
    stored, n = kept(cold, LAYOUT, hit), exact_length(decoder, LAYOUT)
    state = replayed(decoder, LAYOUT, passage, hit, n, stored)
    got, expected = (_continued(decoder, passage, hit, one) for one in (state, cold))
    worst = max(_row_errors(decoder, state, cold, hit))
    return {"replayed": n, "key rows, worst layer": worst, "logits": rounded(relative_error(got[0], expected[0]))}


def surprise(scores: Tensor, tokens: Tensor) -> Tensor:
    """Return minus the log-probability, in nats, of each token under the scores before it."""
    return -scores.log_softmax(-1).gather(-1, tokens[:, None])[:, 0]


def _continued(decoder: Decoder, passage: Tensor, hit: int, state: State) -> Tensor:
    """Return the scores (AFTER, vocabulary) of the next token after each of the tokens H, H + 1, …"""
    hidden, _ = run(decoder, LAYOUT, passage[:, hit : hit + AFTER], hit, state)
    return logits(decoder, hidden[0])


def _compared(got: Tensor, expected: Tensor, tokens: Tensor, cold_surprise: float) -> dict[str, Any]:
    p, q = expected.double().log_softmax(-1), got.double().log_softmax(-1)
    kl = (p.exp() * (p - q)).sum(-1)
    same = (got.argmax(-1) == expected.argmax(-1)).double()
    off = torch.linalg.norm(got - expected, dim=-1) / torch.linalg.norm(expected, dim=-1)
    return {
        **{f"kl of {name}": float(kl[part].mean()) for name, part in PARTS.items()},
        **{f"agreement of {name}": float(same[part].mean()) for name, part in PARTS.items()},
        **{f"logit error of {name}": float(off[part].mean()) for name, part in PARTS.items()},
        "nats above cold": float(surprise(got, tokens).mean()) - cold_surprise,
    }


def _row_errors(decoder: Decoder, state: State, cold: State, hit: int) -> list[float]:
    layers = window_layers(decoder, LAYOUT)
    got, expected = (window_rows(one, LAYOUT, layers, hit) for one in (state, cold))
    return [rounded(relative_error(got[layer], expected[layer])) for layer in layers]


def _summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return mean and interval over passages; of key rows the mean alone, layer by layer."""
    found: dict[str, Any] = {name: interval([one[name] for one in records]) for name in records[0] if name != "rows"}
    if "rows" in records[0]:
        found["key row error by window layer"] = [
            rounded(mean) for mean in np.mean([one["rows"] for one in records], axis=0)
        ]
    return found


def _as_perplexity(nats: list[float]) -> dict[str, float]:
    """Return exp of the mean over passages, and of the ends of its 95 % interval."""
    found = interval(nats)
    mean, half = found["mean"], found["half"]
    ends = {"mean": mean, "low": mean - half, "high": mean + half}
    return {name: rounded(np.exp(value)) for name, value in ends.items()}
