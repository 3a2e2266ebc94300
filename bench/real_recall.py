"""What the real decoder still recalls: exact codes from a list, by the original, the hybrid, and after a replay."""

from typing import Any, NamedTuple

import numpy as np
import torch
from hybrid_quality import rounded
from labkit.models.decoder import Decoder, Layout, State, logits, run
from real_hybrid import LAYOUT, TRIED_LAYERS, WINDOW, kept, replayed, whole
from real_prompts import DIGITS, TEMPLATES, Prompt, prompt

TRIAL_SEEDS = (10_000, 10_001, 10_002)
"""Prompts that chose the global layers; no measurement uses them."""
RESAMPLES = 4000


class Answers(NamedTuple):
    """Of each question of a prompt: whether all digits are the most likely ones, and the code's log-probability."""

    is_right: np.ndarray
    nats: np.ndarray


def answers(decoder: Decoder, layout: Layout, asked: Prompt, state: State) -> Answers:
    """Ask every question on top of the state of the list.

    The right digits are fed whatever the model says (teacher forcing). A code counts only if every digit is the most
    likely one, and then greedy decoding writes the same code.
    """
    hidden, _ = run(decoder, layout, asked.questions, asked.tokens.shape[1], state)
    digits = asked.lengths[:, None] - DIGITS + torch.arange(DIGITS)  # where each row has its code
    rows = torch.arange(len(digits))[:, None]
    right = asked.questions[rows, digits]
    scores = logits(decoder, hidden[rows, digits - 1]).log_softmax(-1)
    nats = scores.gather(-1, right[..., None])[..., 0].sum(-1)
    return Answers((scores.argmax(-1) == right).all(-1).numpy(), nats.numpy())


def tried(decoder: Decoder, tokenizer: Any) -> list[dict[str, Any]]:
    """Return, for each set of global layers that was tried, what is recalled of lists that no measurement uses."""
    asked = [prompt(tokenizer, seed) for seed in TRIAL_SEEDS]
    table = []
    for chosen in TRIED_LAYERS:
        layout = Layout(WINDOW, LAYOUT.sinks, chosen)
        found = [answers(decoder, layout, one, run(decoder, layout, one.tokens)[1]) for one in asked]
        exact, nats = (
            np.mean([values[~one.is_last].mean() for values, one in zip(column, asked, strict=True)])
            for column in zip(*found, strict=True)
        )
        table.append({"global layers": sorted(chosen), "exact": rounded(exact), "nats of the code": rounded(nats)})
    return table


def recall(decoder: Decoder, tokenizer: Any, seeds: range) -> dict[str, Any]:
    """Return the shares of exact answers of the original, the hybrid, and the hybrid after each replay."""
    asked = [prompt(tokenizer, seed) for seed in seeds]
    runs = [_all_answers(decoder, one) for one in asked]
    hit = [one.tokens.shape[1] for one in asked]
    table = {}
    for name in runs[0]:
        found = [run[name] for run in runs]
        cold = [run["hybrid, cold"] for run in runs]
        table[name] = {
            place: _summary(found, cold, [one.is_last == is_last for one in asked])
            for place, is_last in (("list, outside the window", False), ("last lines, inside the window", True))
        }
    original = [run["original"].is_right[~one.is_last].mean() for run, one in zip(runs, asked, strict=True)]
    by_template = {
        text: rounded(np.mean([share for share, one in zip(original, asked, strict=True) if one.template == index]))
        for index, text in enumerate(TEMPLATES)
    }
    return {
        "prompts": len(asked),
        "hit": {"least": min(hit), "most": max(hit)},
        "runs": table,
        "original on the list by template": by_template,
    }


def _all_answers(decoder: Decoder, asked: Prompt) -> dict[str, Answers]:
    hit, everything = asked.tokens.shape[1], whole(decoder)
    _, state = run(decoder, everything, asked.tokens)
    found = {"original": answers(decoder, everything, asked, state)}
    _, state = run(decoder, LAYOUT, asked.tokens)
    found["hybrid, cold"] = answers(decoder, LAYOUT, asked, state)
    stored = kept(state, LAYOUT, hit)
    found["hybrid, no replay"] = answers(decoder, LAYOUT, asked, stored)
    for n in replay_lengths(hit):
        again = replayed(decoder, LAYOUT, asked.tokens, hit, n, stored)
        found[f"hybrid, {n} replayed"] = answers(decoder, LAYOUT, asked, again)
    return found


def replay_lengths(most: int) -> list[int]:
    """Return W, 2W, 4W, … as far as they are below `most`."""
    return [WINDOW << k for k in range(16) if WINDOW << k < most]


def _summary(found: list[Answers], cold: list[Answers], chosen: list[np.ndarray]) -> dict[str, Any]:
    """Return share and interval, and those of the paired difference from the cold run; prompts are resampled."""
    right = [one.is_right[some] for one, some in zip(found, chosen, strict=True)]
    before = [one.is_right[some] for one, some in zip(cold, chosen, strict=True)]
    nats = [one.nats[some].mean() for one, some in zip(found, chosen, strict=True)]
    share = np.array([some.mean() for some in right])
    change = share - np.array([some.mean() for some in before])
    return {
        "answers": int(sum(map(len, right))),
        "exact": _bootstrap(share),
        "change from cold": _bootstrap(change),
        "answers that changed": int(sum((a != b).sum() for a, b in zip(right, before, strict=True))),
        "nats of the code": _bootstrap(np.array(nats)),
    }


def _bootstrap(by_prompt: np.ndarray) -> dict[str, float]:
    """Return the mean over prompts and its 95 % interval; answers of one prompt are not independent."""
    chosen = np.random.default_rng(0).integers(len(by_prompt), size=(RESAMPLES, len(by_prompt)))
    low, high = np.quantile(by_prompt[chosen].mean(axis=1), (0.025, 0.975))
    return {"mean": rounded(by_prompt.mean()), "low": rounded(low), "high": rounded(high)}
