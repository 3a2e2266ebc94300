"""Networks to replay, the rings that hold their windows, and what a cold run tells of a replay.

network = ToyNetwork(layers=4, window=8, seed=0)
run = swa_forward(network, tokens)                    every row and every hidden vector of a cold run
statistics = record_statistics(network, run, hit=64, replay_tokens=8)
"""

from labkit.replay.network import (
    LayerKind,
    Network,
    Rows,
    Run,
    cache_of,
    decode_step,
    swa_forward,
)
from labkit.replay.ring import Position, RingCache, Slot
from labkit.replay.statistics import LayerStatistics, ReplayStatistics, record_statistics
from labkit.replay.toy import ToyNetwork

__all__ = [
    "LayerKind",
    "LayerStatistics",
    "Network",
    "Position",
    "ReplayStatistics",
    "RingCache",
    "Rows",
    "Run",
    "Slot",
    "ToyNetwork",
    "cache_of",
    "decode_step",
    "record_statistics",
    "swa_forward",
]
