"""Prompts for the trained hybrid, what is kept of a cold run, and how far keys are off from it."""

import numpy as np
from labkit.replay import LayerKind, Network, Rows, Run, cache_of
from labkit.replay.hybrid_task import RecordsTask, records_task


def tasks(n: int) -> list[RecordsTask]:
    """Return prompts: 32 records in 512 tokens of a play, asked at the end."""
    return [records_task(seed, tokens=512, records=32) for seed in range(n)]


def global_rows(network: Network, run: Run, hit: int) -> dict[int, Rows]:
    """Return what is kept of a cold run: the rows of its global layers."""
    cache = cache_of(run, network, hit)
    return {layer: cache[layer] for layer, kind in enumerate(network.kinds) if kind is LayerKind.GLOBAL}


def key_error(cache: Rows, cold: Rows) -> float:
    """Return how far the keys of one layer are from those of a cold run, relative to them."""
    return float(np.linalg.norm(cache.keys - cold.keys) / np.linalg.norm(cold.keys))
