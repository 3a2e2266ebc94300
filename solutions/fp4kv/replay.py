"""Tasks of `lab06_replay` on which rows a window layer needs, and how they are rebuilt.

Letters: `W` window, `L` layers, `H` hit length (tokens whose cache is there), `n` replayed tokens, `T` tokens of the
text. Positions count tokens of the text from 0; slots count places in a ring.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Int
from labkit.replay import LayerKind, Network, Rows


def window_mask(
    query_positions: Int[np.ndarray, " n"], key_positions: Int[np.ndarray, " m"], window: int
) -> Bool[np.ndarray, "n m"]:
    """Return which keys each query sees in a window layer.

    Those are the last `window` tokens, its own among them. Positions are those in the text, in any order.

    Raises
    ------
    ValueError
        If `window` is below 1.

    Example
    -------
    >>> window_mask(np.array([5, 6]), np.array([3, 4, 5, 6]), window=2).astype(int)
    array([[0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    age = query_positions[:, None] - key_positions
    return np.asarray((age >= 0) & (age < window))


def ring_length(window: int, drafts: int, is_written_first: bool) -> int:
    """Return the fewest slots that a ring needs where drafts can be rejected.

    Each step feeds the next token and up to `drafts` guesses of those behind it; any number of the guesses is rejected,
    and the next step starts at the first of their positions. With `is_written_first` all rows of a step are written
    before its first token is attended; otherwise each token is attended with the rows before it and its own, and then
    written.

    Raises
    ------
    ValueError
        If `window` is below 1 or `drafts` below 0.

    Example
    -------
    >>> ring_length(window=128, drafts=5, is_written_first=False)
    132
    """
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    if drafts < 0:
        raise ValueError(f"drafts: expected at least 0 tokens, got {drafts}")
    return window - 1 + drafts + is_written_first


def window_slots(position: int, start: int, window: int, length: int) -> Int[np.ndarray, " m"]:
    """Return the slots that the token at `position` reads, oldest position first.

    A position of the text lies in slot position modulo `length` of the ring. The token reads the last `window`
    positions, its own among them, and none before `start`, the first position that was written for this request.

    Raises
    ------
    ValueError
        If `window` is below 1, `length` is below `window`, or `position` is below `start`.

    Example
    -------
    >>> window_slots(position=9, start=0, window=4, length=5)
    array([1, 2, 3, 4])
    >>> window_slots(position=9, start=8, window=4, length=5)
    array([3, 4])
    """
    if window < 1:
        raise ValueError(f"window: expected at least 1 token, got {window}")
    if length < window:
        raise ValueError(f"length: expected a slot for each of {window} tokens, got {length}")
    if position < start:
        raise ValueError(f"position: expected {start} or later, where the request starts, got {position}")
    return np.arange(max(start, position - window + 1), position + 1) % length


def exact_rows(layers: int, window: int, hit: int, replay_tokens: int) -> Bool[np.ndarray, "layers n"]:
    """Return which rebuilt rows are those of a cold run.

    One line per window layer, one column per replayed token. The columns are the last `replay_tokens` positions before
    `hit`, or all of them where there are fewer. `layers` counts window layers.

    Raises
    ------
    ValueError
        If `layers` or `window` is below 1, or `hit` or `replay_tokens` below 0.

    Example
    -------
    >>> exact_rows(layers=3, window=3, hit=20, replay_tokens=5).astype(int)
    array([[1, 1, 1, 1, 1],
           [0, 0, 1, 1, 1],
           [0, 0, 0, 0, 1]])
    """
    for name, value, least in (
        ("layers", layers, 1), ("window", window, 1), ("hit", hit, 0), ("replay_tokens", replay_tokens, 0),
    ):  # fmt: skip
        if value < least:
            raise ValueError(f"{name}: expected at least {least}, got {value}")
    start = max(0, hit - replay_tokens)
    first_exact = start + np.arange(layers)[:, None] * (window - 1 if start else 0)
    return np.asarray(np.arange(start, hit) >= first_exact)


def bounded_replay(
    network: Network,
    tokens: Int[np.ndarray, " T"],
    hit: int,
    replay_tokens: int,
    global_rows: Mapping[int, Rows],
) -> list[Rows]:
    """Return the cache of a prefix of `hit` tokens after replaying some of its tokens.

    Replayed are the last `replay_tokens` before `hit`, or all where there are fewer. One entry per layer. A window
    layer's rows are rebuilt: those of the last W - 1 positions before `hit`, or of all where there are fewer, computed
    from the replayed tokens alone. A global layer's are `global_rows[layer]`, as they are: all `hit` rows, which the
    replayed tokens read. The tokens keep the positions that they have in the text.

    Raises
    ------
    ValueError
        If `hit` is not between 0 and T, `replay_tokens` is too few to rebuild the rows, or `global_rows` has not `hit`
        rows of each global layer.

    Example
    -------
    >>> from labkit.replay import ToyNetwork
    >>> network = ToyNetwork(layers=3, window=4)
    >>> cache = bounded_replay(network, np.arange(20), hit=20, replay_tokens=4, global_rows={})
    >>> [rows.keys.shape[1] for rows in cache]
    [3, 3, 3]
    """
    n_rows = min(hit, network.window - 1)
    if not 0 <= hit <= len(tokens):
        raise ValueError(f"hit: expected 0 to {len(tokens)}, the tokens of the text, got {hit}")
    if replay_tokens < n_rows:
        raise ValueError(f"replay_tokens: expected at least {n_rows}, the rows to rebuild, got {replay_tokens}")
    for layer, kind in enumerate(network.kinds):
        rows = global_rows.get(layer)
        if kind is LayerKind.GLOBAL and (rows is None or rows.keys.shape[1] != hit):
            got = "none" if rows is None else rows.keys.shape[1]
            raise ValueError(f"global_rows: expected {hit} rows of layer {layer}, got {got}")

    positions = np.arange(max(0, hit - replay_tokens), hit)
    is_visible = window_mask(positions, positions, network.window)
    hidden = network.embed(tokens[positions])
    cache = []
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            cache.append(global_rows[layer])
            hidden = network.attend(layer, hidden, positions, global_rows[layer])
        else:
            rows = network.rows(layer, hidden, positions)
            cache.append(Rows(*(array[:, len(positions) - n_rows :] for array in rows)))
            hidden = network.attend(layer, hidden, positions, rows, is_visible)
    return cache


def exact_replay(
    network: Network, tokens: Int[np.ndarray, " T"], hit: int, global_rows: Mapping[int, Rows]
) -> list[Rows]:
    """Return the cache of a prefix of `hit` tokens as a cold run leaves it.

    One entry per layer, as from `bounded_replay`, by replaying the fewest tokens that always suffice. Exact in real
    arithmetic: in float64 only the order of the sums differs.

    Raises
    ------
    ValueError
        If `hit` is not between 0 and T, or `global_rows` has not `hit` rows of each global layer.

    Example
    -------
    >>> from labkit.replay import ToyNetwork, cache_of, swa_forward
    >>> network, tokens = ToyNetwork(layers=3, window=4), np.arange(20)
    >>> cold = cache_of(swa_forward(network, tokens), network, hit=20)
    >>> rebuilt = exact_replay(network, tokens, hit=20, global_rows={})
    >>> bool(np.allclose(rebuilt[2].keys, cold[2].keys, rtol=0, atol=1e-12))
    True
    """
    n_window_layers = sum(kind is LayerKind.WINDOW for kind in network.kinds)
    return bounded_replay(network, tokens, hit, n_window_layers * (network.window - 1), global_rows)
