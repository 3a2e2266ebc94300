"""Tasks of `lab06_replay` on error: what a cold run guarantees of a bounded replay, and what it lets one expect.

Both come from recorded statistics alone: no weight of the network and no token is in them.
Letters: `L` layers, `n` replayed tokens, oldest first; `e` how far a hidden vector can be off, in its length.
"""

import numpy as np
from jaxtyping import Float64
from labkit.replay import ReplayStatistics


def replay_error_bound(statistics: ReplayStatistics) -> Float64[np.ndarray, "layers_and_output n"]:
    """Return how far the input of each layer can be from a cold run's, a guarantee.

    One column per replayed token. The last line is the output of the last layer. For a layer whose input can be off by
    e, with `input_error(e)` = u and reach = the largest u among the replayed tokens of the window, each head moves its
    output by at most

        min(mass · distance + tanh(ε/2) · diameter, diameter) + value_gain · reach,
        ε = (key_diameter · query_gain · u / 2 + (query_norm + query_gain · u) · key_gain · reach) / √D,

    the heads add up, and the layer turns e plus their sum into `output_error` of it.

    Example
    -------
    >>> from labkit.replay import ToyNetwork, record_statistics, swa_forward
    >>> network, tokens = ToyNetwork(layers=2, window=3, output_scale=0.1), np.arange(12)
    >>> statistics = record_statistics(network, swa_forward(network, tokens), hit=12, replay_tokens=3)
    >>> replay_error_bound(statistics).round(3)
    array([[0.   , 0.   , 0.   ],
           [0.107, 0.25 , 0.   ],
           [0.672, 0.767, 0.336]])
    """
    errors = [np.zeros(statistics.layers[0].truncated_mass.shape[-1])]
    for layer in statistics.layers:
        off = layer.input_error(errors[-1])
        reach = np.array([off[max(0, t - statistics.window + 1) : t + 1].max() for t in range(len(off))])
        query_error = layer.query_gain[:, None] * off
        key_error = layer.key_gain[:, None] * reach

        epsilon = layer.key_diameter * query_error / 2 + (layer.query_norm + query_error) * key_error
        epsilon = epsilon / np.sqrt(layer.head_width)
        moved = layer.truncated_mass * layer.mean_distance + np.tanh(epsilon / 2) * layer.value_diameter
        moved = np.minimum(moved, layer.value_diameter) + layer.value_gain[:, None] * reach
        errors.append(layer.output_error(errors[-1] + moved.sum(axis=0)))
    return np.stack(errors)


def predict_replay_error(statistics: ReplayStatistics) -> Float64[np.ndarray, "layers_and_output n"]:
    """Return the root mean square error to expect of each layer's input, an estimate.

    One column per replayed token. The last line is the output of the last layer. The squares of what each head adds are
    summed up:

        (mass · distance)² + value_rms_gain² · weight_squares · mean of e² over the replayed tokens of the window.

    No guarantee: it takes the errors of tokens and layers to be independent and weights not to move, and leaves out
    norms and MLPs.

    Example
    -------
    >>> from labkit.replay import ToyNetwork, record_statistics, swa_forward
    >>> network, tokens = ToyNetwork(layers=2, window=3, output_scale=0.1), np.arange(12)
    >>> statistics = record_statistics(network, swa_forward(network, tokens), hit=12, replay_tokens=3)
    >>> predict_replay_error(statistics).round(3)
    array([[0.   , 0.   , 0.   ],
           [0.107, 0.25 , 0.   ],
           [0.469, 0.284, 0.011]])
    """
    squares = [np.zeros(statistics.layers[0].truncated_mass.shape[-1])]
    for layer in statistics.layers:
        before = squares[-1]
        mean = np.array([before[max(0, t - statistics.window + 1) : t + 1].mean() for t in range(len(before))])
        truncated = (layer.truncated_mass * layer.mean_distance) ** 2
        inherited = layer.value_rms_gain[:, None] ** 2 * layer.weight_squares * mean
        squares.append(before + (truncated + inherited).sum(axis=0))
    return np.sqrt(np.stack(squares))
