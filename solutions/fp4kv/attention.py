"""Tasks of `lab03_errors` on attention itself: weights, outputs, and how far a quantised cache moves them.

Letters: `q k v` query, key, value; `p` attention weights; `T` tokens, `D` head width of keys, `E` of values,
`n` queries.
"""

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int
from labkit.schemes import SCHEMES, Placement, SweepRow


def attention_weights(
    q: Float[np.ndarray, "*heads n D"],
    keys: Float[np.ndarray, "*heads T D"],
    is_visible: Bool[np.ndarray, "n T"] | None = None,
) -> Float64[np.ndarray, "*heads n T"]:
    """Return the softmax of q·k / √D over the keys that each query sees.

    Everything is computed in float64, where no logit of float32 numbers is too large: the weights of one query are
    finite and add up to 1. A key that a query does not see has weight 0, whatever its logit. Without `is_visible`
    every key is seen.

    Raises
    ------
    ValueError
        If a query sees no key; the message names the first such query.

    Example
    -------
    >>> attention_weights(np.array([[2.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 5.0]])).round(3)
    array([[0.196, 0.804]])
    """
    logits = np.asarray(q, np.float64) @ np.asarray(keys, np.float64).swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if is_visible is not None:
        blind = np.flatnonzero(~is_visible.any(axis=-1))
        if blind.size:
            raise ValueError(f"is_visible: expected a key for every query, got none for query {blind[0]}")
        logits = np.where(is_visible, logits, -np.inf)

    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def attend(
    q: Float[np.ndarray, "*heads n D"],
    keys: Float[np.ndarray, "*heads T D"],
    values: Float[np.ndarray, "*heads T E"],
    is_visible: Bool[np.ndarray, "n T"] | None = None,
) -> Float64[np.ndarray, "*heads n E"]:
    """Return the output of each query: the values averaged with its weights.

    Everything is computed in float64. Without `is_visible` every key is seen.

    Raises
    ------
    ValueError
        If a query sees no key; the message names the first such query.

    Example
    -------
    >>> attend(np.array([[2.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 5.0]]), np.array([[10.0], [20.0]])).round(3)
    array([[18.044]])
    """
    return np.asarray(attention_weights(q, keys, is_visible) @ np.asarray(values, np.float64))


def attention_error_sweep(
    q: Float32[np.ndarray, "*heads n D"],
    keys: Float32[np.ndarray, "*heads T D"],
    values: Float32[np.ndarray, "*heads T E"],
    is_visible: Bool[np.ndarray, "n T"] | None = None,
) -> list[SweepRow]:
    """Return the relative output error of each scheme and placement, in their order.

    For each of `SCHEMES` and, within it, each `Placement`. The error is √(Σ(ô - o)² / Σo²) over all heads, queries and
    channels; o comes from the cache as it was given, ô from the cache with its keys, its values, or both replaced by
    what the scheme gives back.

    Raises
    ------
    ValueError
        If a query sees no key, or the width of keys or values is not a multiple of 32.

    Example
    -------
    >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    >>> for row in attention_error_sweep(x[:1], x, x)[-3:]:
    ...     print(row.scheme, row.placement.value, round(row.error, 3))
    MXFP4 keys only 0.004
    MXFP4 values only 0.098
    MXFP4 keys and values 0.098
    """
    exact = attention_weights(q, keys, is_visible)
    output = exact @ values

    rows = []
    for scheme in SCHEMES:
        weights = attention_weights(q, scheme.round_trip(keys), is_visible)
        decoded = scheme.round_trip(values)
        outputs = {
            Placement.KEYS: weights @ values,
            Placement.VALUES: exact @ decoded,
            Placement.BOTH: weights @ decoded,
        }
        for placement in Placement:
            error = np.linalg.norm(outputs[placement] - output) / np.linalg.norm(output)
            rows.append(SweepRow(scheme.name, placement, scheme.bits_per_element, float(error)))
    return rows


def span_rank(weights: Float[np.ndarray, "n T"], span_tokens: int, right: int) -> Int[np.ndarray, " n"]:
    """Return where the right span stands among all spans, by attention mass.

    The context is cut into spans of `span_tokens`; span j begins with token j · span_tokens. The rank is one more than
    the number of spans with more mass than span `right`: 1 is first.

    Raises
    ------
    ValueError
        If `span_tokens` does not divide T, or there is no span `right`.

    Example
    -------
    >>> span_rank(np.array([[0.1, 0.2, 0.4, 0.0, 0.2, 0.1]]), span_tokens=2, right=0)
    array([2])
    """
    n_queries, n_tokens = weights.shape
    if span_tokens < 1 or n_tokens % span_tokens:
        raise ValueError(f"span_tokens: expected a divisor of {n_tokens} tokens, got {span_tokens}")
    if not 0 <= right < n_tokens // span_tokens:
        raise ValueError(f"right: expected a span from 0 to {n_tokens // span_tokens - 1}, got {right}")

    mass = weights.reshape(n_queries, -1, span_tokens).sum(axis=-1)
    return np.asarray(1 + (mass > mass[:, [right]]).sum(axis=-1))
