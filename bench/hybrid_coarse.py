"""The coarse index with low-bit keys: which blocks it still picks, and what that costs."""

from typing import Any

import numpy as np
from hybrid_placement import GLOBALS, with_outliers
from hybrid_quality import forward, quality, relative, summary
from labkit.replay import Rows, swa_forward
from labkit.replay.attention import mix
from labkit.replay.hybrid import HybridNetwork, load_hybrid
from labkit.replay.hybrid_index import BLOCK_TOKENS, CoarseIndex, IndexFormat
from labkit.replay.hybrid_task import RecordsTask, records_task

BLOCK_COUNTS = (1, 2, 4, 8, 16)
Record = dict[str, Any]


def index_overlap(size: tuple[int, int], seeds: range, outliers: int = 1) -> list[Record]:
    """Return how many blocks low-bit index keys share with exact ones, and what attention's output loses."""
    network, table = with_outliers(load_hybrid(index=None), outliers), []
    tasks = [records_task(seed, *size) for seed in seeds]
    runs = [swa_forward(network, task.tokens) for task in tasks]
    positions = np.arange(size[0])
    for layer in GLOBALS:
        for blocks in BLOCK_COUNTS:
            found: dict[IndexFormat, list[dict[str, float]]] = {kind: [] for kind in IndexFormat}
            for task, run in zip(tasks, runs, strict=True):
                queries = network.queries(layer, run.hidden[layer], positions)
                rows = Rows(network.mixed_keys(layer, run.rows[layer].keys), run.rows[layer].values)
                for kind in IndexFormat:
                    found[kind].append(compared(task, queries, rows, positions, CoarseIndex(kind, blocks)))
            table += [
                {
                    "outlier ratio": outliers,
                    "layer": layer,
                    "blocks": blocks,
                    "format": kind.value,
                    **summary(records),
                }
                for kind, records in found.items()
            ]
    return table


def compared(
    task: RecordsTask, queries: np.ndarray, rows: Rows, positions: np.ndarray, index: CoarseIndex
) -> dict[str, float]:
    """Return overlap with the picks of exact keys and output errors, for text and for questions."""
    picks, exact = (
        CoarseIndex(kind, index.blocks).picks(queries, rows.keys, positions)
        for kind in (index.format, IndexFormat.EXACT)
    )
    out, of_exact, dense = (output(queries, rows, positions, some) for some in (picks, exact, np.ones_like(picks)))
    had_choice = positions // BLOCK_TOKENS > index.blocks
    shared = ((picks & exact).sum(axis=-1) - 1) / index.blocks  # the own block is always shared
    found = {}
    for name, where in (("text", task.text_positions), ("questions", task.questions)):
        chosen = where[had_choice[where]]
        found[f"overlap, {name}"] = float(shared[:, chosen].mean())
        found[f"output error against dense, {name}"] = relative((out - dense)[:, :, where], dense[:, :, where])
        found[f"output error against exact index, {name}"] = relative((out - of_exact)[:, :, where], dense[:, :, where])
    return found


def output(queries: np.ndarray, rows: Rows, positions: np.ndarray, picks: np.ndarray) -> np.ndarray:
    """Return attention over the picked blocks."""
    reads = np.repeat(picks, BLOCK_TOKENS, axis=-1)[..., : len(positions)] & (positions[:, None] >= positions)
    return mix(queries, rows.keys[:, None], rows.values[:, None], reads[:, None])


def index_quality(size: tuple[int, int], seeds: range, outliers: int = 1) -> list[Record]:
    """Return recall and KL against dense attention under each index format and number of blocks."""
    tasks = [records_task(seed, *size) for seed in seeds]
    dense = [forward(load_hybrid(index=None), task.tokens) for task in tasks]
    table: list[Record] = []
    for kind in IndexFormat:
        for blocks in BLOCK_COUNTS:
            network = with_outliers(load_hybrid(kind, blocks), outliers)
            row = {"outlier ratio": outliers, "format": kind.value, "blocks": blocks}
            table.append({**row, **qualities(network, tasks, dense)})
    return table


def qualities(network: HybridNetwork, tasks: list[RecordsTask], dense: list[np.ndarray]) -> Record:
    """Return a network's quality against dense logits."""
    pairs = zip(tasks, dense, strict=True)
    return summary(quality(task, d, forward(network, task.tokens))._asdict() for task, d in pairs)
