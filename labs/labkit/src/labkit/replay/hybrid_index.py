"""A coarse index: which blocks of a global layer a token reads.

A low-bit copy of each key is kept beside the real one. A token is scored by the largest product of its copy with the
queries that share its key-value head, a block of eight tokens by its best token, and a query reads the real keys and
values of the blocks that score highest, and of its own block.

Source: the indexer of DeepSeek V4.1-Flash keeps keys in E2M1 with one UE8M0 scale per 32 channels and picks among
blocks of 8 positions. There the index has projections of its own, trained, and queries in E2M1 too; here it scores the
layer's own keys with the layer's own queries in full precision.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64, Int

from labkit.block_formats import round_trip_fp8
from labkit.formats import E2M1_MAX, UE8M0_GROUP_LENGTH
from labkit.given.lab02 import decode_e2m1, encode_e2m1, round_to_e4m3, ue8m0_exponent

BLOCK_TOKENS: Final = 8

SMALLEST_AMAX: Final = E2M1_MAX * 2.0**-126
"""A group's largest magnitude counts as at least this, so that an all-zero group has a scale."""


def round_trip_index(keys: Float64[np.ndarray, "*rows D"]) -> Float64[np.ndarray, "*rows D"]:
    """Return keys after E2M1 with the smallest power of two per 32 channels that clips none of them."""
    groups = keys.reshape(*keys.shape[:-1], -1, UE8M0_GROUP_LENGTH)
    reach = np.maximum(np.abs(groups).max(axis=-1, keepdims=True), SMALLEST_AMAX) / E2M1_MAX
    mantissa, exponent = np.frexp(reach)  # reach = mantissa · 2^exponent, mantissa in [0.5, 1)
    scale = np.ldexp(1.0, exponent - (mantissa == 0.5))
    return np.reshape(decode_e2m1(encode_e2m1(groups / scale)) * scale, keys.shape)


def _exact(keys: Float64[np.ndarray, "*rows D"]) -> Float64[np.ndarray, "*rows D"]:
    return keys


def _fp8(keys: Float64[np.ndarray, "*rows D"]) -> Float64[np.ndarray, "*rows D"]:
    return np.asarray(round_trip_fp8(keys.astype(np.float32), round_to_e4m3, ue8m0_exponent), np.float64)


class IndexFormat(enum.Enum):
    """How the index keeps its copy of the keys."""

    EXACT = "the keys themselves"
    FP8 = "E4M3, UE8M0 per 32"
    E2M1 = "E2M1, UE8M0 per 32"

    @property
    def round_trip(self) -> Callable[[Float64[np.ndarray, "*rows D"]], Float64[np.ndarray, "*rows D"]]:
        """Return the function from keys to what the index holds of them."""
        return {IndexFormat.EXACT: _exact, IndexFormat.FP8: _fp8, IndexFormat.E2M1: round_trip_index}[self]


@dataclass(frozen=True)
class CoarseIndex:
    """Keys in a format, and how many blocks a query may read beside its own."""

    format: IndexFormat
    blocks: int

    def picks(
        self,
        queries: Float64[np.ndarray, "kv_heads group n D"],
        keys: Float64[np.ndarray, "kv_heads m D"],
        positions: Int[np.ndarray, " n"],
    ) -> Bool[np.ndarray, "kv_heads n blocks"]:
        """Return which blocks each query reads, of all that begin at or before its position."""
        number = np.arange(-(-keys.shape[1] // BLOCK_TOKENS))
        own = (positions // BLOCK_TOKENS)[:, None]
        scores = np.where(number < own, self._block_scores(queries, keys), -np.inf)
        picked = np.broadcast_to(number == own, scores.shape).copy()
        for _ in range(min(self.blocks, len(number))):
            is_best = number == scores.argmax(axis=-1, keepdims=True)  # among equals the earliest
            picked |= is_best & (scores > -np.inf)
            scores[is_best] = -np.inf
        return picked

    def _block_scores(
        self, queries: Float64[np.ndarray, "kv_heads group n D"], keys: Float64[np.ndarray, "kv_heads m D"]
    ) -> Float64[np.ndarray, "kv_heads n blocks"]:
        """Return the best score in each block; the last may be short, but no query's past ends there."""
        whole = np.pad(self.format.round_trip(keys), ((0, 0), (0, -keys.shape[1] % BLOCK_TOKENS), (0, 0)))
        products = queries @ whole[:, None].swapaxes(-1, -2)
        return np.asarray(products.reshape(*products.shape[:-1], -1, BLOCK_TOKENS).max(axis=(1, -1)))
