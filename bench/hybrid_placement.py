"""Where an error sits: the same format in window and in global layers, and one scale doubled in one row."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from hybrid_quality import Quality, Store, divergence, forward, quality, relative, summary
from labkit.formats import GROUP_LENGTH
from labkit.replay import LayerKind, Rows, swa_forward
from labkit.replay.hybrid import HYBRID_KINDS, HybridNetwork, load_hybrid
from labkit.replay.hybrid_index import IndexFormat
from labkit.replay.hybrid_task import RecordsTask, records_task
from labkit.schemes import SCHEMES

E2M1, FP8 = "E2M1, E4M3 per 16", "FP8, UE8M0 per 32"
BY_NAME = {scheme.name: scheme.round_trip for scheme in SCHEMES}
WINDOWS = tuple(layer for layer, kind in enumerate(HYBRID_KINDS) if kind is LayerKind.WINDOW)
GLOBALS = tuple(layer for layer, kind in enumerate(HYBRID_KINDS) if kind is LayerKind.GLOBAL)
OUTLIER_PAIR, SAMPLE_SEED = 14, 1000
SMALLEST_KL = 1e-12  # a sum this small is rounding
Record = dict[str, Any]
Plan = dict[int, str]  # layer: format of its rows


def round_trip(name: str, x: np.ndarray) -> np.ndarray:
    """Return rows after a format."""
    return BY_NAME[name](x.astype(np.float32)).astype(np.float64)


def with_outliers(network: HybridNetwork, ratio: int) -> HybridNetwork:
    """Return the same function with one RoPE pair of each key head, in every layer, near `ratio` times the median.

    What a key gains its queries lose, by a power of two, so that no logit changes by a bit. A ratio of 1 is the network
    as it was trained.
    """
    if ratio == 1:
        return network
    weights, config = dict(network.weights), network.config
    group, half = config["query_heads"] // config["kv_heads"], config["head_width"] // 2
    for layer, factors in enumerate(outlier_factors(ratio)):
        for name, by in (("key", factors), ("query", 1 / np.repeat(factors, group))):
            matrix = weights[f"layers.{layer}.{name}.weight"].copy()
            by_channel = matrix.reshape(-1, 2, half, matrix.shape[1])
            by_channel[:, :, OUTLIER_PAIR] *= by[:, None, None]
            weights[f"layers.{layer}.{name}.weight"] = matrix
    return replace(network, weights=weights)


@cache
def outlier_factors(ratio: int) -> np.ndarray:
    """Return, by layer and key head, the power of two that brings the pair nearest to `ratio` times the median."""
    factors = []
    for rows in swa_forward(load_hybrid(index=None), records_task(SAMPLE_SEED, 512, 48).tokens).rows:
        size = np.sqrt((rows.keys**2).mean(axis=1))
        pair = size[:, [OUTLIER_PAIR, OUTLIER_PAIR + size.shape[1] // 2]].max(axis=1)
        factors.append(2.0 ** np.round(np.log2(ratio * np.median(size, axis=1) / pair)))
    return np.array(factors)


def stored(plan: Plan, parts: str = "keys and values") -> Store:
    """Return what gives the rows of the planned layers back as their formats keep them."""

    def store(layer: int, rows: Rows) -> Rows:
        if layer not in plan:
            return rows
        keys = round_trip(plan[layer], rows.keys) if "keys" in parts else rows.keys
        return Rows(keys, round_trip(plan[layer], rows.values) if "values" in parts else rows.values)

    return store


def plans() -> Iterator[tuple[str, Plan, str]]:
    """Yield every placement: its name, the format of each layer, and which half of the rows."""
    both = "keys and values"
    for name in (E2M1, FP8):
        for where, layers in (("window", WINDOWS), ("global", GLOBALS), ("all", WINDOWS + GLOBALS)):
            yield f"{name} in {where} layers", dict.fromkeys(layers, name), both
    for layer in range(len(HYBRID_KINDS)):
        yield f"{E2M1} in layer {layer}", {layer: E2M1}, both
    for where, layers in (("window", WINDOWS), ("global", GLOBALS)):
        for part in ("keys", "values"):
            yield f"{E2M1} in {part} of {where} layers", dict.fromkeys(layers, E2M1), part
    split = [(FP8, E2M1), (E2M1, FP8)]
    for of_window, of_global in split:
        plan = {**dict.fromkeys(WINDOWS, of_window), **dict.fromkeys(GLOBALS, of_global)}
        yield f"{of_window} in window layers, {of_global} in global layers", plan, both


def placement(index: IndexFormat | None, size: tuple[int, int], seeds: range, outliers: int = 1) -> Record:
    """Return the quality under every placement, and window less global seed by seed."""
    network, tasks = with_outliers(load_hybrid(index), outliers), [records_task(seed, *size) for seed in seeds]
    cold = [forward(network, task.tokens) for task in tasks]
    found: dict[str, list[Quality]] = {"none": [quality(task, c, c) for task, c in zip(tasks, cold, strict=True)]}
    for name, plan, parts in plans():
        store = stored(plan, parts)
        found[name] = [
            quality(task, c, forward(network, task.tokens, store)) for task, c in zip(tasks, cold, strict=True)
        ]
    tables = {name: summary(one._asdict() for one in qualities) for name, qualities in found.items()}
    pairs = zip(found[f"{E2M1} in window layers"], found[f"{E2M1} in global layers"], strict=True)
    differences = [dict(zip(Quality._fields, np.subtract(w, g), strict=True)) for w, g in pairs]
    return {
        "index": index.value if index else "none (every row is read)",
        "tokens": size[0],
        "records": size[1],
        "sequences": len(seeds),
        "outlier ratio": outliers,
        "placements": tables,
        "E2M1 in window less in global": summary(differences),
    }


def row_errors(size: tuple[int, int], seeds: range, outliers: int = 1) -> list[Record]:
    """Return the relative error of keys and values that each format leaves, by layer."""
    network = with_outliers(load_hybrid(), outliers)
    runs = [swa_forward(network, records_task(seed, *size).tokens) for seed in seeds]
    table = []
    for name in (E2M1, FP8):
        for layer, kind in enumerate(network.kinds):
            errors = [
                {part: relative(round_trip(name, x) - x, x) for part, x in run.rows[layer]._asdict().items()}
                for run in runs
            ]
            row = {
                "outlier ratio": outliers,
                "format": name,
                "layer": layer,
                "kind": kind.name.lower(),
            }
            table.append({**row, **summary(errors)})
    return table


class Row(NamedTuple):
    """Which rows are tried: those of a layer, keys or values, of a byte of text or of a record."""

    layer: int
    part: str
    is_record: bool


def doubled_scales(size: tuple[int, int], seeds: range, rows_each: int = 2) -> list[Record]:
    """Return what doubling the scale of one group of 16 in one row does, all rows being E2M1.

    A text row is that of a byte of text; a record row holds the asked key, or of the values the recalled value.
    """
    network, everywhere = load_hybrid(), stored(dict.fromkeys(range(len(HYBRID_KINDS)), E2M1))
    tasks = [records_task(seed, *size) for seed in seeds]
    bases = [forward(network, task.tokens, everywhere) for task in tasks]
    table = []
    for kind in map(Row._make, itertools.product(range(len(HYBRID_KINDS)), ("keys", "values"), (False, True))):
        found = []
        for seed, task, base in zip(seeds, tasks, bases, strict=True):
            rng = np.random.default_rng([seed, kind.layer])
            for asked in rng.permutation(len(task.questions))[:rows_each]:
                store, row = with_doubled_scale(everywhere, task, kind, asked, rng)
                found.append(moved(task, row, base, forward(network, task.tokens, store)))
        named = {"kind": network.kinds[kind.layer].name.lower(), "row": "record" if kind.is_record else "text"}
        table.append({"layer": kind.layer, "part": kind.part, **named, **summary(found)})
    return table


def with_doubled_scale(
    everywhere: Store, task: RecordsTask, kind: Row, asked: int, rng: np.random.Generator
) -> tuple[Store, int]:
    """Return what stores all rows, but one with one group of one head doubled, and the position of that row."""
    text_row = rng.choice(task.text_positions) + 1
    row = int(task.sources[asked] - (kind.part == "keys") if kind.is_record else text_row)
    head, start = rng.integers(2), GROUP_LENGTH * rng.integers(2)

    def store(layer: int, rows: Rows) -> Rows:
        rows = everywhere(layer, rows)
        if layer == kind.layer:
            getattr(rows, kind.part)[head, row, start : start + GROUP_LENGTH] *= 2
        return rows

    return store, row


def moved(task: RecordsTask, row: int, base: np.ndarray, changed: np.ndarray) -> dict[str, float]:
    """Return how far the distributions of the tokens from the row on have moved, and how many answers are lost."""
    kl, was_right, is_right = divergence(base, changed), *(answered(task, logits) for logits in (base, changed))
    return {
        "kl, sum over later tokens": float(kl.sum()),
        "kl, largest of a token": float(kl.max()),
        "share of kl in the next 32 tokens": float(kl[row : row + 32].sum() / max(kl.sum(), SMALLEST_KL)),
        "answers lost": float((was_right & ~is_right).sum()),
    }


def answered(task: RecordsTask, logits: np.ndarray) -> np.ndarray:
    """Return which questions are answered."""
    return np.asarray(logits[task.questions].argmax(axis=-1) == task.answers)
