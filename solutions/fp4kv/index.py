"""Task of `lab06_replay` on the coarse index through which a global layer is attended."""

import numpy as np
from jaxtyping import Float, Int


def index_topk(
    q: Float[np.ndarray, "heads D"], index_keys: Float[np.ndarray, "T D"], block_tokens: int, top_blocks: int
) -> Int[np.ndarray, " top_blocks"]:
    """Return which blocks of the context a group of query heads reads, the best first.

    The context is cut into blocks of `block_tokens`, the last of which may be shorter. A token scores the largest
    q·k over the heads, a block the largest score of its tokens. Of equal blocks the earlier comes first. Where there
    are fewer blocks than `top_blocks`, the rest is -1.

    Raises
    ------
    ValueError
        If `block_tokens` or `top_blocks` is below 1, there is no query head, or a number is NaN or infinite.

    Example
    -------
    >>> index_topk(np.array([[1.0]]), np.array([[3.0], [0.0], [1.0], [5.0], [4.0]]), block_tokens=2, top_blocks=2)
    array([1, 2])
    >>> index_topk(np.array([[1.0]]), np.array([[3.0]]), block_tokens=2, top_blocks=2)
    array([ 0, -1])
    """
    for name, value in (("block_tokens", block_tokens), ("top_blocks", top_blocks)):
        if value < 1:
            raise ValueError(f"{name}: expected at least 1, got {value}")
    if not len(q):
        raise ValueError("q: expected at least one head, got none")
    for name, array in (("q", q), ("index_keys", index_keys)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)][0]}")
    scores = (np.asarray(q, np.float64) @ np.asarray(index_keys, np.float64).T).max(axis=0)
    blocks = np.array([scores[start : start + block_tokens].max() for start in range(0, len(scores), block_tokens)])
    best = np.argsort(-blocks, kind="stable")[:top_blocks]
    return np.pad(best, (0, top_blocks - len(best)), constant_values=-1)
