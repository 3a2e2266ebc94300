"""Random weights: how far the kept key rows are off, layer by layer, after replays of several lengths."""

from typing import Final

import fp4kv
import numpy as np
from labkit.replay import ToyNetwork, cache_of, swa_forward

from pictures import replay_runs as runs

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
