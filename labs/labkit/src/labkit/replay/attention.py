"""What every network here computes alike: the first layer's input, RoPE, softmax attention, the window.

Letters: `n` tokens that read, `m` rows that are read, `D` head width of keys, `E` of values.
"""

import numpy as np
from jaxtyping import Bool, Float64, Int


def look_up(
    embedding: Float64[np.ndarray, "vocabulary width"], tokens: Int[np.ndarray, " n"]
) -> Float64[np.ndarray, "n width"]:
    """Return the embeddings of tokens.

    Raises
    ------
    TypeError, ValueError
        If tokens are not integers, or not of the vocabulary.
    """
    if not np.issubdtype(tokens.dtype, np.integer):
        raise TypeError(f"tokens: expected integers, got {tokens.dtype}")
    wrong = tokens[(tokens < 0) | (tokens >= len(embedding))]
    if wrong.size:
        raise ValueError(f"tokens: expected 0 to {len(embedding) - 1}, got {wrong[0]}")
    return np.asarray(embedding[tokens])


def in_window(positions: Int[np.ndarray, " n"], window: int) -> Bool[np.ndarray, "n n"]:
    """Return which tokens of a text each of them reads in a window layer, itself among them."""
    age = positions[:, None] - positions
    return np.asarray((age < window) & (age >= 0))


def rotate(
    x: Float64[np.ndarray, "heads n D"], positions: Int[np.ndarray, " n_or_1"], base: float = 1e4
) -> Float64[np.ndarray, "heads n D"]:
    """Return x after RoPE: channels c and c + D/2 turned by position times base^(-2c/D)."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * base ** (-np.arange(half) / half)
    cosine, sine = np.cos(angles), np.sin(angles)
    low, high = x[..., :half], x[..., half:]
    return np.concatenate([low * cosine - high * sine, high * cosine + low * sine], axis=-1)


def mix(
    queries: Float64[np.ndarray, "*heads n D"],
    keys: Float64[np.ndarray, "*rows_of_heads m D"],
    values: Float64[np.ndarray, "*rows_of_heads m E"],
    is_visible: Bool[np.ndarray, "*of_heads n m"],
) -> Float64[np.ndarray, "*heads n E"]:
    """Return the values of the rows that each query sees, averaged with its weights; axes of heads are broadcast."""
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])
    scores = np.where(is_visible, scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.finfo(np.float64).max))
    return np.asarray(shares @ values / shares.sum(axis=-1, keepdims=True))


def mix_row_by_row(
    queries: Float64[np.ndarray, "heads n D"],
    keys: Float64[np.ndarray, "heads m D"],
    values: Float64[np.ndarray, "heads m E"],
    is_visible: Bool[np.ndarray, "n m"],
) -> Float64[np.ndarray, "heads n E"]:
    """Return the same as `mix`, each query by itself, from the rows that it sees and from no other."""
    mixed = np.empty((*queries.shape[:2], values.shape[-1]))
    for number, seen in enumerate(is_visible):
        logits = (queries[:, number, None] * keys[:, seen]).sum(axis=-1) / np.sqrt(queries.shape[-1])
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        mixed[:, number] = (weights[..., None] * values[:, seen]).sum(axis=1) / weights.sum(axis=-1, keepdims=True)
    return mixed
