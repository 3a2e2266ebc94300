"""Quality after a replay against its length: window-only and hybrid, random and trained weights."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import fp4kv
import numpy as np
from labkit.plotting import COLOURS
from labkit.replay import Network, ToyNetwork, cache_of, swa_forward
from labkit.replay.hybrid import WINDOW_ONLY, load_hybrid, random_hybrid
from labkit.replay.hybrid_task import RecordsTask
from matplotlib.axes import Axes

from pictures import replay_runs as runs

N_TASKS: Final = 10
TEXT_AT: Final = 256
"""Where a second hit ends, in the middle of the play; the 64 tokens after it are compared."""

TEXT_TOKENS: Final = 64
HYBRID_LENGTHS: Final = (32, 40, 48, 56, 62)
WINDOW_LENGTHS: Final = (32, 48, 64, 96, 124)


class Quality(NamedTuple):
    """A replay of n tokens, averaged over prompts."""

    replay_tokens: int
    key_errors: np.ndarray  # by layer
    text: runs.Effect
    recall: float
    cold_recall: float


def networks() -> dict[str, tuple[Network, tuple[int, ...]]]:
    """Return the four networks, and the lengths of replay that each is tried with."""
    return {
        "hybrid, trained": (load_hybrid(), HYBRID_LENGTHS),
        "hybrid, random": (random_hybrid(seed=0), HYBRID_LENGTHS),
        "windows alone, trained": (load_hybrid(kinds=WINDOW_ONLY), WINDOW_LENGTHS),
        "windows alone, random": (random_hybrid(seed=0, kinds=WINDOW_ONLY), WINDOW_LENGTHS),
    }


def measure(network: Network, lengths: Sequence[int], n_tasks: int = N_TASKS) -> list[Quality]:
    """Return the quality of a network after replays of several lengths."""
    by_task = [_of_task(network, lengths, task) for task in runs.tasks(n_tasks)]
    return [_mean(entries) for entries in zip(*by_task, strict=True)]


def _of_task(network: Network, lengths: Sequence[int], task: RecordsTask) -> list[Quality]:
    run = swa_forward(network, task.tokens)
    part = task.tokens[: TEXT_AT + TEXT_TOKENS]
    found = []
    for n in lengths:
        rebuilt = {}
        for hit in (TEXT_AT, runs.QUESTIONS_AT):
            kept = runs.global_rows(network, run, hit)
            rebuilt[hit] = fp4kv.bounded_replay(network, task.tokens, hit, n, kept)
        cold = cache_of(run, network, TEXT_AT)
        text = runs.continue_from(network, rebuilt[TEXT_AT], part, TEXT_AT)
        asked = runs.continue_from(network, rebuilt[runs.QUESTIONS_AT], task.tokens, runs.QUESTIONS_AT)
        found.append(
            Quality(
                n,
                np.array([runs.key_error(*pair) for pair in zip(rebuilt[TEXT_AT], cold, strict=True)]),
                runs.effect(text, run.logits[TEXT_AT : len(part)]),
                runs.recall(asked, task, runs.QUESTIONS_AT),
                runs.recall(run.logits, task),
            )
        )
    return found


def _mean(entries: Sequence[Quality]) -> Quality:
    text = runs.mean_effect([entry.text for entry in entries])
    keys = np.mean([entry.key_errors for entry in entries], axis=0)
    recall, cold = (float(np.mean([entry[place] for entry in entries])) for place in (3, 4))
    return Quality(entries[0].replay_tokens, keys, text, recall, cold)


STYLES: Final = {
    "hybrid, trained": (COLOURS["ink"], "o", "-"),
    "hybrid, random": (COLOURS["ink"], "o", "--"),
    "windows alone, trained": (COLOURS["replayed"], "s", "-"),
    "windows alone, random": (COLOURS["replayed"], "s", "--"),
}


def draw(panels: Sequence[Axes], rows: dict[str, list[Quality]]) -> None:
    """Draw the key error of the last window layer and the logit error, against the tokens replayed."""
    for name, entries in rows.items():
        colour, marker, line = STYLES[name]
        some = [entry for entry in entries if entry.text.logit_error > 1e-9]
        lengths = [entry.replay_tokens for entry in some]
        style = {"color": colour, "marker": marker, "linestyle": line, "label": name, "markersize": 5}
        panels[0].plot(lengths, [entry.key_errors.max() for entry in some], **style)
        panels[1].plot(lengths, [entry.text.logit_error for entry in some], **style)
    for axes, label in zip(panels, ("largest key error of a layer", "logit error"), strict=True):
        axes.set(yscale="log", xlabel="tokens replayed", ylabel=label, xticks=(32, 64, 96))


def as_table(rows: dict[str, list[Quality]]) -> tuple[list[str], list[list[str]], str]:
    """Return head, rows and caption: each network at n = W."""
    head = ["network", "key error by layer", "logit error", "divergence (nats)", "same top token", "recall", "cold"]
    body = []
    for name, (first, *_) in rows.items():
        keys = ", ".join(f"{error:.2f}" if error > 1e-9 else "0" for error in first.key_errors)
        body.append(
            [
                name,
                keys,
                f"{first.text.logit_error:.4f}",
                f"{first.text.divergence:.6f}",
                f"{100 * first.text.agreement:.1f}\u00a0%",
                f"{100 * first.recall:.1f}\u00a0%",
                f"{100 * first.cold_recall:.1f}\u00a0%",
            ]
        )
    caption = (
        "Replaying n = W = 32 tokens: ten prompts, 64 tokens of text after a hit of 256, 32 questions after one of 448"
    )
    return head, body, caption


EARLIER: Final = {"W": (0.0, 0.32, 0.56, 0.86), "2W": (0.0, 0.0, 0.09, 0.18), "3W": (0.0, 0.0, 0.0, 0.004)}
"""Relative error of the last W - 1 key rows by layer, four random layers, W = 8, its norm and generator unstated."""


def random_picture(n_networks: int = 20) -> dict[int, np.ndarray]:
    """Return by length of replay the relative error (Frobenius) of the kept key rows by layer, mean over networks."""
    found: dict[int, list[list[float]]] = {n: [] for n in (8, 16, 24, 27, 28)}
    for seed in range(n_networks):
        network = ToyNetwork(layers=4, window=8, seed=seed, width=32, output_scale=0.8)
        tokens = np.random.default_rng(seed).integers(64, size=80)
        cold = cache_of(swa_forward(network, tokens), network, 80)
        for n, errors in found.items():
            rebuilt = fp4kv.bounded_replay(network, tokens, 80, n, {})
            errors.append([runs.key_error(*pair) for pair in zip(rebuilt, cold, strict=True)])
    return {n: np.mean(errors, axis=0) for n, errors in found.items()}


def picture_table(found: dict[int, np.ndarray]) -> tuple[list[str], list[list[str]], str]:
    """Return head, rows and caption: random networks beside the earlier picture."""
    body = []
    for n, name in ((8, "W"), (16, "2W"), (24, "3W"), (27, "4(W - 1) - 1"), (28, "4(W - 1)")):
        earlier = EARLIER.get(name)
        shown = ", ".join(f"{error:g}" for error in earlier) if earlier else ""
        body.append([name.replace("-", "−"), *(_digits(error) for error in found[n]), shown])
    head = ["n", "layer 0", "1", "2", "3", "earlier"]
    return head, body, "Relative error of the last W − 1 key rows after replaying n tokens"


def _digits(error: float) -> str:
    return "0" if error < 1e-12 else f"{error:.2f}" if error > 0.01 else f"{error:.4f}"
