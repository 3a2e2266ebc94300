"""Bounded replay on the hybrid and on window-only networks, trained and random: what n replayed tokens leave wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fp4kv import bounded_replay, window_mask
from hybrid_quality import divergence, relative, summary
from labkit.replay import LayerKind, Rows, Run, cache_of, swa_forward
from labkit.replay.hybrid import WINDOW_ONLY, HybridNetwork, assemble, load_hybrid, random_hybrid, read_weights
from labkit.replay.hybrid_task import RecordsTask, records_task

AFTER = 32
"""Tokens after the hit that are looked at beside the first: as many as the window holds."""

HITS: dict[str, Callable[[RecordsTask], int]] = {
    "text": lambda task: int(task.questions[0]) - 2 * AFTER,
    "questions": lambda task: int(task.questions[0]),
}
"""Where the cached prefix ends: in the text, or where the questions begin."""


class Subject(NamedTuple):
    """A network to replay: its name, how it is made for a seed, and how many window layers it has."""

    name: str
    network: Callable[[int], HybridNetwork]
    layers: int

    @property
    def replays(self) -> list[int]:
        """Return the replayed tokens to try, from the window to the fewest that are exact."""
        window = 32
        most = self.layers * (window - 1)
        return sorted({*range(window, most, 8 if self.layers == 2 else 16), most})


SUBJECTS = [
    Subject("hybrid, trained", lambda seed: load_hybrid(), 2),
    Subject("hybrid, random", lambda seed: random_hybrid(seed), 2),
    Subject("window only, trained weights of the hybrid", lambda seed: load_hybrid(kinds=WINDOW_ONLY), 4),
    Subject("window only, random", lambda seed: random_hybrid(seed, kinds=WINDOW_ONLY), 4),
]


def window_only(file: Path) -> Subject:
    """Return the network that `tools/train_hybrid` trains with window layers alone."""
    header, weights = read_weights(file)
    network = assemble(weights, header["config"], None, 0, WINDOW_ONLY)
    return Subject("window only, trained so", lambda seed: network, 4)


def replays(subjects: list[Subject], size: tuple[int, int], seeds: range) -> list[dict[str, Any]]:
    """Return, for each network, hit and number of replayed tokens, what differs from the cold run."""
    table = []
    for subject in subjects:
        tasks = [records_task(seed, *size) for seed in seeds]
        networks = [subject.network(seed) for seed in seeds]
        runs = [swa_forward(network, task.tokens) for network, task in zip(networks, tasks, strict=True)]
        for where, hit_of in HITS.items():
            for n in subject.replays:
                records = [
                    compared(network, task, run, hit_of(task), n)
                    for network, task, run in zip(networks, tasks, runs, strict=True)
                ]
                table.append({"network": subject.name, "hit": where, "replayed": n, **summary(records)})
    return table


def compared(network: HybridNetwork, task: RecordsTask, run: Run, hit: int, n: int) -> dict[str, float]:
    """Return the errors of one replay: of key rows by layer, of the next logits, of distributions and answers."""
    cold = cache_of(run, network, hit)
    global_rows = {layer: rows for layer, rows in enumerate(cold) if network.kinds[layer] is LayerKind.GLOBAL}
    cache = bounded_replay(network, task.tokens, hit, n, global_rows)
    logits, expected = continued(network, task.tokens, hit, cache), run.logits[hit:]
    kl, same = divergence(expected, logits), logits.argmax(axis=-1) == expected.argmax(axis=-1)
    errors = {
        f"key rows of layer {layer}": relative(cache[layer].keys - cold[layer].keys, cold[layer].keys)
        for layer, kind in enumerate(network.kinds)
        if kind is LayerKind.WINDOW
    }
    return {
        **errors,
        "logit error of the next token": relative(logits[0] - expected[0], expected[0]),
        "kl of the next token": float(kl[0]),
        "kl of the next 32 tokens": float(kl[:AFTER].mean()),
        "kl of later tokens": float(kl[AFTER:].mean()),
        "agreement of the next 32 tokens": float(same[:AFTER].mean()),
        **recalled(task, hit, logits, expected),
    }


def recalled(task: RecordsTask, hit: int, logits: np.ndarray, expected: np.ndarray) -> dict[str, float]:
    """Return the share of questions answered after the hit, cold and replayed: the first ones, and all."""
    found = {}
    for name, asked in (("next 32 tokens", task.questions < hit + AFTER), ("all later tokens", task.questions >= hit)):
        asked = asked & (task.questions >= hit)
        at, answers = task.questions[asked] - hit, task.answers[asked]
        for run, some in (("cold", expected), ("replayed", logits)):
            right = some[at].argmax(axis=-1) == answers
            found[f"recall in {name}, {run}"] = float(right.mean()) if len(at) else np.nan
    return found


def continued(network: HybridNetwork, tokens: np.ndarray, hit: int, cache: list[Rows]) -> np.ndarray:
    """Return the logits of the tokens after the hit, fed at once on top of a cache."""
    positions = np.arange(hit, len(tokens))
    hidden = network.embed(tokens[hit:])
    for layer, (kind, old) in enumerate(zip(network.kinds, cache, strict=True)):
        new = network.rows(layer, hidden, positions)
        rows = Rows(*(np.concatenate(pair, axis=1) for pair in zip(old, new, strict=True)))
        at = np.arange(len(tokens) - rows.keys.shape[1], len(tokens))
        is_visible = window_mask(positions, at, network.window) if kind is LayerKind.WINDOW else None
        hidden = network.attend(layer, hidden, positions, rows, is_visible)
    return network.logits(hidden)
