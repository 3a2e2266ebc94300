"""Bounded replay of a real decoder with windows imposed, as `bench/real_replay.py` measured it."""

from typing import Any

import numpy as np

from pictures.recorded import recorded

Table = tuple[list[str], list[list[str]], str]
OUTSIDE, INSIDE = "list, outside the window", "last lines, inside the window"


def replays() -> list[dict[str, Any]]:
    """Return what was measured for each number of replayed tokens; 0 leaves the rebuilt rows away."""
    found: list[dict[str, Any]] = recorded("real_replay")["continuation"]["replays"]
    return found


def runs() -> dict[str, Any]:
    """Return what was recalled by the original, by the hybrid cold, and after replays."""
    found: dict[str, Any] = recorded("real_replay")["recall"]["runs"]
    return found


def perplexity(entry: dict[str, Any]) -> float:
    """Return by what factor the perplexity of the tokens after the hit is above that of a cold run."""
    return float(np.exp(entry["nats above cold"]["mean"]))


def replay_table() -> Table:
    """Return head, rows and caption: next-token distributions after a hit."""
    head = [
        "tokens replayed",
        "key error, last window layer",
        "divergence (nats): first",
        "2 to 16",
        "17 to 64",
        "same top token",
        "perplexity",
    ]
    body = []
    for entry in replays():
        errors = entry.get("key row error by window layer")
        body.append(
            [
                f"{entry['replayed']:,}" if entry["replayed"] else "none",
                _small(errors[-1]) if errors else "",
                *(
                    _small(entry[f"kl of {part}"]["mean"])
                    for part in ("first token", "tokens 2 to 16", "tokens 17 to 64")
                ),
                f"{100 * entry['agreement of tokens 2 to 16']['mean']:.0f}\u00a0%",
                f"×\u00a0{perplexity(entry):.3f}",
            ]
        )
    return head, body, f"Against the hybrid's own cold run; same top token of tokens 2 to 16; {made()}"


def recall_table() -> Table:
    """Return head, rows and caption: answers recalled."""
    first = runs()["original"]
    head = ["run", *(f"{name.split(',')[1].strip()} ({first[name]['answers']} answers)" for name in (OUTSIDE, INSIDE))]
    body = [
        [name, *(_interval(entry[place]["exact"]) for place in (OUTSIDE, INSIDE))] for name, entry in runs().items()
    ]
    return head, body, "Codes recalled from a list, exactly, with 95 % intervals over prompts"


def made() -> str:
    """Return what was measured with."""
    record = recorded("real_replay")
    return f"hits of {record['continuation']['hit']:,} tokens in a play"


def _small(value: float) -> str:
    return "<\u00a00.00001" if value < 1e-5 else f"{value:.4f}" if value < 0.01 else f"{value:.2f}"


def _interval(value: dict[str, float]) -> str:
    return f"{100 * value['mean']:.0f}\u00a0% ({100 * value['low']:.0f} to {100 * value['high']:.0f})"
