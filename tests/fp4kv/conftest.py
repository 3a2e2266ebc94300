"""What the tests of replay share: a replay written apart from the reference, which keeps every hidden vector."""

from collections.abc import Callable

import numpy as np
import pytest
from labkit.replay import LayerKind, Network, Run
from labkit.replay.network import part

Replayed = Callable[[Network, np.ndarray, int, int, Run], np.ndarray]


@pytest.fixture(scope="session")
def replayed() -> Replayed:
    """Return the input of every layer, and the output, for the tokens from hit - n to hit, fed from there."""

    def replayed(network: Network, tokens: np.ndarray, hit: int, replay_tokens: int, run: Run) -> np.ndarray:
        positions = np.array([t for t in range(hit) if t >= hit - replay_tokens], int)
        is_visible = np.zeros((len(positions), len(positions)), bool)
        for row, column in np.ndindex(is_visible.shape):
            is_visible[row, column] = 0 <= row - column < network.window
        hidden = [network.embed(tokens[positions])]
        for layer, kind in enumerate(network.kinds):
            if kind is LayerKind.WINDOW:
                rows = network.rows(layer, hidden[-1], positions)
                hidden.append(network.attend(layer, hidden[-1], positions, rows, is_visible))
            else:
                hidden.append(network.attend(layer, hidden[-1], positions, part(run.rows[layer], 0, hit)))
        return np.stack(hidden)

    return replayed
