"""Three faulty attentions. Each is one decode step over an E2M1 cache, with one mistake built in.

    double_rounding   keys and values pass through bfloat16 before they are quantised, so they are rounded twice
    narrow_sum        q·k is added up in a register with the range of FP16: a sum beyond 65504 becomes infinite
    low_mask          the logit of a hidden key is set to -10000, not to -infinity

Softmax is the student's own, handed over as `attention_weights`; nothing else of lab 3 is in here. How a lab uses them:

    attend_cached(exhibit, attention_weights)                 the honest one
    SUSPECTS["low_mask"](exhibit, attention_weights)          a suspect
    convicted(exhibit, attention_weights)                     names of the suspects that it convicts: ["low_mask"]

An exhibit convicts a suspect when the suspect's output and the honest one differ somewhere by more than `NOTICED`.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import ml_dtypes
import numpy as np
from jaxtyping import Bool, Float32, Float64

from labkit.given.lab02 import dequantise, quantise_e2m1

FLOAT16_LIMIT: Final = 65520.0
"""From here on the nearest FP16 number is infinity: half a step of 32 above the largest, 65504."""

LOW_LOGIT: Final = -10_000.0
"""What `low_mask` takes for a logit below all others."""

NOTICED: Final = 1e-6
"""Outputs differ when they are farther apart than this share of the largest decoded value: float64 sums, taken in
another order, are not."""

Weights = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Exhibit(NamedTuple):
    """An input of a decode step: queries, a cache, and which of its tokens each query sees."""

    q: Float32[np.ndarray, "n D"]
    keys: Float32[np.ndarray, "T D"]
    values: Float32[np.ndarray, "T E"]
    is_visible: Bool[np.ndarray, "n T"]


Suspect = Callable[[Exhibit, Weights], Float64[np.ndarray, "n E"]]


def attend_cached(exhibit: Exhibit, attention_weights: Weights) -> Float64[np.ndarray, "n E"]:
    """Return the attention output over keys and values that went through E2M1."""
    q, keys, values, is_visible = _cached(exhibit)
    return _outputs(_logits(q, keys), values, is_visible, attention_weights)


def double_rounding(exhibit: Exhibit, attention_weights: Weights) -> Float64[np.ndarray, "n E"]:
    """Attention over keys and values that were rounded to bfloat16 before they went through E2M1."""
    narrow = [x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in (exhibit.keys, exhibit.values)]
    return attend_cached(exhibit._replace(keys=narrow[0], values=narrow[1]), attention_weights)


def narrow_sum(exhibit: Exhibit, attention_weights: Weights) -> Float64[np.ndarray, "n E"]:
    """Attention whose sums over channels, taken from the first to the last, have the range of FP16."""
    q, keys, values, is_visible = _cached(exhibit)
    sums = np.zeros((len(q), len(keys)))
    for channel in range(q.shape[-1]):
        sums = _in_range(sums + _in_range(np.outer(q[:, channel], keys[:, channel])))
    return _outputs(sums / np.sqrt(q.shape[-1]), values, is_visible, attention_weights)


def low_mask(exhibit: Exhibit, attention_weights: Weights) -> Float64[np.ndarray, "n E"]:
    """Attention that hides a key by giving it a logit of -10000."""
    q, keys, values, is_visible = _cached(exhibit)
    logits = np.where(is_visible, _logits(q, keys), LOW_LOGIT)
    return _outputs(logits, values, np.ones_like(is_visible), attention_weights)


SUSPECTS: Final[dict[str, Suspect]] = {
    "double_rounding": double_rounding,
    "narrow_sum": narrow_sum,
    "low_mask": low_mask,
}


def convicted(exhibit: Exhibit, attention_weights: Weights) -> list[str]:
    """Return the names of the suspects whose output differs from the honest one.

    Raises
    ------
    ValueError
        If the parts of the exhibit do not fit together, a query sees no key, or a number is not finite.
    """
    _refuse_misfits(exhibit)
    with np.errstate(invalid="ignore", over="ignore"):
        honest = attend_cached(exhibit, attention_weights)
        found = {name: suspect(exhibit, attention_weights) for name, suspect in SUSPECTS.items()}
    room = NOTICED * np.abs(_cached(exhibit)[2]).max(initial=0)
    return [name for name, outputs in found.items() if not np.all(np.abs(outputs - honest) <= room)]


def _cached(exhibit: Exhibit) -> tuple[np.ndarray, ...]:
    """Return queries, decoded keys and values in float64, and the mask."""
    keys, values = (dequantise(quantise_e2m1(x)).astype(np.float64) for x in (exhibit.keys, exhibit.values))
    return exhibit.q.astype(np.float64), keys, values, exhibit.is_visible


def _logits(q: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return np.asarray(q @ keys.T / np.sqrt(q.shape[-1]))


def _outputs(logits: np.ndarray, values: np.ndarray, is_visible: np.ndarray, attention_weights: Weights) -> np.ndarray:
    """Return the outputs for given logits: with keys one channel wide and a query of 1, weights are their softmax.

    Where the largest logit is infinite there is no softmax, ∞ - ∞, whatever the student's function makes of it.
    """
    outputs = []
    for row, seen in zip(logits, is_visible, strict=True):
        if not np.isfinite(row[seen].max()):
            outputs.append(np.full(values.shape[-1], np.nan))
            continue
        weights = attention_weights(np.ones((1, 1)), row[seen][:, None])
        outputs.append((weights @ values[seen])[0])
    return np.array(outputs)


def _in_range(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < FLOAT16_LIMIT, x, np.sign(x) * np.inf)


def _refuse_misfits(exhibit: Exhibit) -> None:
    q, keys, values, is_visible = exhibit
    shapes = f"q {q.shape}, keys {keys.shape}, values {values.shape}, is_visible {is_visible.shape}"
    if {x.ndim for x in exhibit} != {2} or (q.shape[1], len(keys), is_visible.shape) != (
        keys.shape[1],
        len(values),
        (len(q), len(keys)),
    ):
        raise ValueError(f"exhibit: expected shapes (n, D), (T, D), (T, E) and (n, T), got {shapes}")
    if not np.all([np.all(np.isfinite(x)) for x in (q, keys, values)]):
        raise ValueError("exhibit: expected finite numbers, got NaN or infinity")
    if not is_visible.any(axis=-1).all():
        raise ValueError("is_visible: expected a key for every query, got a query that sees none")
