"""Real keys, values and queries: SmolLM2-135M-Instruct reading 512 tokens of the Jargon File.

Three key-value heads, nine query heads, head width 64; keys and queries after RoPE. What they come from and under
which terms stands beside them, in `data/README.md`.
"""

from importlib.resources import as_file, files
from typing import Final

import numpy as np
from jaxtyping import Float32, Int32

LAYERS: Final = (0, 5, 10, 18, 23, 29)
"""The layers whose tensors are here, of 30."""


def load_keys(layer: int = 10) -> Float32[np.ndarray, "tokens=512 kv_heads=3 width=64"]:
    """Return the keys that one layer, one of `LAYERS`, wrote to its cache.

    >>> load_keys(layer=10).shape
    (512, 3, 64)
    """
    return _read("keys", layer)


def load_values(layer: int = 10) -> Float32[np.ndarray, "tokens=512 kv_heads=3 width=64"]:
    """Return the values that one layer, one of `LAYERS`, wrote to its cache."""
    return _read("values", layer)


def load_queries(layer: int = 10) -> Float32[np.ndarray, "last_tokens=64 query_heads=9 width=64"]:
    """Return the queries of the last 64 tokens in one layer, one of `LAYERS`."""
    return _read("queries", layer)


def load_tokens() -> Int32[np.ndarray, "tokens=512"]:
    """Return the ids of the tokens that the model read."""
    return _read_array("tokens")


def _read(name: str, layer: int) -> np.ndarray:
    if layer not in LAYERS:
        raise ValueError(f"layer: expected one of {LAYERS}, got {layer}")
    return _read_array(f"{name}_{layer}").astype(np.float32)


def _read_array(name: str) -> np.ndarray:
    with as_file(files("labkit") / "data" / "smollm2_kv.npz") as path, np.load(path, allow_pickle=False) as arrays:
        return np.asarray(arrays[name])
