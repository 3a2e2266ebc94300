"""The trained hybrid, as `bench/hybrid.py` measured it: quality after a replay, and where a cache bears four bits."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from labkit.plotting import COLOURS
from matplotlib.axes import Axes

from pictures.recorded import recorded

Entry = dict[str, Any]
Table = tuple[list[str], list[list[str]], str]

NETWORKS: Final = {
    "hybrid, trained": "hybrid, trained",
    "hybrid, random": "hybrid, random",
    "window only, trained so": "windows alone, trained",
    "window only, random": "windows alone, random",
}
STYLES: Final = {
    "hybrid, trained": (COLOURS["ink"], "o", "-"),
    "hybrid, random": (COLOURS["ink"], "o", "--"),
    "windows alone, trained": (COLOURS["replayed"], "s", "-"),
    "windows alone, random": (COLOURS["replayed"], "s", "--"),
}
FP8: Final = "FP8, UE8M0 per 32"
E2M1: Final = "E2M1, E4M3 per 16"
PLACES: Final = {
    "FP8 in windows": f"{FP8} in window layers",
    "FP8 in global layers": f"{FP8} in global layers",
    "E2M1 in windows": f"{E2M1} in window layers",
    "E2M1 in global layers": f"{E2M1} in global layers",
    "E2M1 everywhere": f"{E2M1} in all layers",
    "E2M1, but FP8 in windows": f"{FP8} in window layers, {E2M1} in global layers",
}
ROUNDING: Final = 1e-12
LOUDNESS: Final = "outlier ratio"
LOUD: Final = 16
"""One pair of key channels in every head reaches about that many times as far as the median channel, and the queries
are divided by as much: the same function."""


def replays(hit: str = "text") -> dict[str, list[Entry]]:
    """Return by network what was measured after replays of more and more tokens; the hit ends in the text."""
    found: dict[str, list[Entry]] = {name: [] for name in NETWORKS.values()}
    for entry in recorded("hybrid")["replay"]:
        if entry["hit"] == hit and entry["network"] in NETWORKS:
            found[NETWORKS[entry["network"]]].append(entry)
    return found


def key_errors(entry: Entry) -> list[float]:
    """Return the relative error of the kept key rows, one for each window layer."""
    return [entry[name]["mean"] for name in sorted(entry) if name.startswith("key rows")]


def draw(panels: Sequence[Axes]) -> None:
    """Draw the largest key error of a layer, and the logit error, against the tokens replayed."""
    for name, entries in replays().items():
        colour, marker, line = STYLES[name]
        style = {"color": colour, "marker": marker, "linestyle": line, "label": name, "markersize": 5}
        some = [entry for entry in entries if max(key_errors(entry)) > ROUNDING]
        lengths = [entry["replayed"] for entry in some]
        panels[0].plot(lengths, [max(key_errors(entry)) for entry in some], **style)
        panels[1].plot(lengths, [entry["logit error of the next token"]["mean"] for entry in some], **style)
    for axes, label in zip(panels, ("largest key error of a layer", "logit error"), strict=True):
        axes.set(yscale="log", xlabel="tokens replayed", ylabel=label, xticks=(32, 64, 96))


def replay_table() -> Table:
    """Return head, rows and caption: each network after a replay of W tokens."""
    asked = replays("questions")
    head = [
        "network",
        "key error, window layers",
        "logit error",
        "divergence (nats)",
        "same top token",
        "records recalled",
    ]
    body = []
    for name, (first, *_) in replays().items():
        recall = asked[name][0]["recall in all later tokens, replayed"]["mean"]
        keys = ", ".join(f"{error:.2f}" if error > ROUNDING else "0" for error in key_errors(first))
        logits = first["logit error of the next token"]["mean"]
        divergence = first["kl of the next 32 tokens"]["mean"]
        agreement = first["agreement of the next 32 tokens"]["mean"]
        body.append([name, keys, f"{logits:.4f}", f"{divergence:.6f}", percent(agreement), percent(recall)])
    return head, body, f"Replaying W = 32 tokens: the next 32 tokens after a hit in the text, {counted()}"


def counted() -> str:
    """Return how many sequences were measured."""
    return f"{recorded('hybrid')['made']['sequences of 512 tokens']} sequences of 512 tokens"


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.1f}\u00a0%"


def spread(value: dict[str, float], digits: int) -> str:
    """Return a mean and half the width of its 95 % interval."""
    return f"{value['mean']:.{digits}f} ± {value['half']:.{digits}f}"


def placement(loudness: int = 1) -> Entry:
    """Return what was measured over 512 tokens with keys as trained, or with an outlier in every head; no index."""
    for entry in recorded("hybrid")["placement"]:
        if entry["tokens"] == 512 and entry[LOUDNESS] == loudness and "none" in entry["index"]:
            return dict(entry)
    raise ValueError(f"loudness: expected one that was measured, got {loudness}")


def divergence(place: str, loudness: int = 1) -> dict[str, float]:
    """Return how far next-token distributions move in text, mean and half of the interval; `place` as in `PLACES`."""
    return dict(placement(loudness)["placements"][PLACES[place]]["text_kl"])


def window_less_global(loudness: int = 1) -> dict[str, float]:
    """Return how much more E2M1 diverges in window layers than in global ones, sequence by sequence."""
    return dict(placement(loudness)["E2M1 in window less in global"]["text_kl"])


def least_recall() -> float:
    """Return the smallest share of records recalled, over places and keys."""
    tables = (placement(loudness)["placements"] for loudness in (1, LOUD))
    return min(float(table[name]["recall"]["mean"]) for table in tables for name in PLACES.values())


def placement_table() -> Table:
    """Return head, rows and caption."""
    head = ["rounded", "keys as trained", f"with outliers of {LOUD}"]
    body = [[place, *(spread(divergence(place, loudness), 4) for loudness in (1, LOUD))] for place in PLACES]
    return head, body, f"Divergence in nats from the exact cache, in text: {counted()}, mean and 95 % interval"


def doubled(where: str) -> float:
    """Return the divergence, summed over later tokens, after a scale was doubled, mean over layers, parts and rows."""
    name = "kl, sum over later tokens"
    return float(
        np.mean([entry[name]["mean"] for entry in recorded("hybrid")["doubled scale"] if entry["kind"] == where])
    )


def index_entries(loudness: int = 1, blocks: int = 8) -> dict[str, tuple[float, Entry]]:
    """Return by format of the index the share of its picks that exact keys pick too, in text, and its quality."""

    def chosen(table: str) -> list[Entry]:
        entries = recorded("hybrid")[table]
        return [entry for entry in entries if (entry["blocks"], entry[LOUDNESS]) == (blocks, loudness)]

    overlap: dict[str, list[float]] = {}
    for entry in chosen("index overlap"):
        overlap.setdefault(entry["format"], []).append(entry["overlap, text"]["mean"])
    quality = {entry["format"]: entry for entry in chosen("index quality")}
    return {name: (float(np.mean(shares)), quality[name]) for name, shares in overlap.items()}


def index_table() -> Table:
    """Return head, rows and caption."""
    head = ["index keys", "same blocks", "divergence (nats)", "same top token", "records recalled"]
    _, *loud = index_entries(LOUD).items()
    entries = {**index_entries(), **{f"{name}, outliers": entry for name, entry in loud}}
    body = []
    for name, (overlap, entry) in entries.items():
        agreement, recall = percent(entry["text_agreement"]["mean"]), percent(entry["recall"]["mean"])
        format_ = name.replace(" per ", " per\u00a0")
        body.append([format_, percent(overlap), spread(entry["text_kl"], 4), agreement, recall])
    return head, body, "Eight blocks of eight tokens are picked from up to 64; divergence from a hybrid that reads all"
