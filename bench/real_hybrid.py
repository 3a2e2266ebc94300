"""A hybrid made of a real decoder, and what its cache keeps at a hit: global rows, first rows, and a replayed tail."""

from collections.abc import Sequence
from typing import Final

import torch
from labkit.models.decoder import Decoder, Layout, Rows, State, run
from torch import Tensor

WINDOW: Final = 64
SINKS: Final = 4
"""First tokens that every window layer sees besides its window: heads with nothing to say attend the first token."""
GLOBAL_LAYERS: Final = frozenset({5, 8, 14, 15, 17, 18, 19, 23})
"""Of `TRIED_LAYERS` the set that recalled lists that are not measured best (`real_replay.py --parts tried`)."""
TRIED_LAYERS: Final = (
    GLOBAL_LAYERS,  # those on which a window of 32, alone, cost one list most
    frozenset({5, 6, 8, 9, 16, 17, 18, 21}),  # the same with a window of 64
    frozenset({5, 8, 13, 16, 17, 18, 21, 23}),
    frozenset({3, 8, 13, 17, 18, 23, 28}),  # every fifth layer, and 17
)
LAYOUT: Final = Layout(WINDOW, SINKS, GLOBAL_LAYERS)


def whole(decoder: Decoder) -> Layout:
    """Return the layout in which every layer sees everything: the decoder as it was trained."""
    return Layout(WINDOW, SINKS, frozenset(range(len(decoder.layers))))


def window_layers(decoder: Decoder, layout: Layout) -> list[int]:
    """Return the layers that see a window alone, from the bottom up."""
    return [layer for layer in range(len(decoder.layers)) if not layout.is_global(layer)]


def exact_length(decoder: Decoder, layout: Layout) -> int:
    """Return how many replayed tokens rebuild every window row: W − 1 for each window layer."""
    return len(window_layers(decoder, layout)) * (layout.window - 1)


def kept(state: State, layout: Layout, hit: int) -> State:
    """Return what is stored at a hit: global rows below it and the first rows of the window layers, no window."""
    return tuple(_kept_rows(rows, layout, layer, hit) for layer, rows in enumerate(state))


def _kept_rows(rows: Rows, layout: Layout, layer: int, hit: int) -> Rows:
    last = hit if layout.is_global(layer) else min(hit, layout.sinks)
    return rows.at(rows.positions < last)


def replayed(decoder: Decoder, layout: Layout, tokens: Tensor, hit: int, n: int, stored: State) -> State:
    """Return the state at `hit` with window rows rebuilt by feeding the last n tokens again.

    Window layers see nothing between the first rows and the start of the replay, because the state holds nothing
    there. Global rows stay as stored: the replayed tokens read them and do not write them.
    """
    start = max(hit - n, 0)
    return run(decoder, layout, tokens[:, start:hit], start, stored)[1]


def window_rows(state: State, layout: Layout, layers: Sequence[int], hit: int) -> dict[int, Tensor]:
    """Return, for each layer, the keys (batch, KV heads, at most W − 1, width) that token `hit` sees in its window."""
    found = {}
    for layer in layers:
        positions = state[layer].positions
        found[layer] = state[layer].at((positions > hit - layout.window) & (positions < hit)).keys
    return found


def relative_error(got: Tensor, expected: Tensor) -> float:
    """Return the norm of the difference over the norm of what is expected."""
    return float(torch.linalg.norm(got - expected) / torch.linalg.norm(expected))
