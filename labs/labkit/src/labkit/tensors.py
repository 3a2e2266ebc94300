"""Real keys, values and queries: SmolLM2-135M-Instruct reading 512 tokens of the Jargon File.

Three key-value heads, nine query heads, head width 64; keys and queries after RoPE. What they come from and under
which terms stands beside them, in `data/README.md`.
"""

from importlib.resources import as_file, files
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float32, Int32

LAYERS: Final = (0, 5, 10, 18, 23, 29)
"""The layers whose tensors are here, of 30."""


class LayerTensors(NamedTuple):
    """What one attention layer wrote to its cache, and the last 64 queries that read it."""

    keys: Float32[np.ndarray, "tokens=512 kv_heads=3 width=64"]
    values: Float32[np.ndarray, "tokens=512 kv_heads=3 width=64"]
    queries: Float32[np.ndarray, "last_tokens=64 query_heads=9 width=64"]


def load(layer: int) -> LayerTensors:
    """Return one layer's keys, values and queries.

    Raises
    ------
    ValueError
        If the layer is not one of `LAYERS`.

    Example
    -------
    >>> load(10).keys.shape
    (512, 3, 64)
    """
    if layer not in LAYERS:
        raise ValueError(f"layer: expected one of {LAYERS}, got {layer}")
    names = (f"{part}_{layer}" for part in LayerTensors._fields)
    return LayerTensors(*(_read(name).astype(np.float32) for name in names))


def load_tokens() -> Int32[np.ndarray, "tokens=512"]:
    """Return the ids of the tokens that the model read."""
    return _read("tokens")


def _read(name: str) -> np.ndarray:
    with as_file(files("labkit") / "data" / "smollm2_kv.npz") as path, np.load(path, allow_pickle=False) as arrays:
        return np.asarray(arrays[name])
