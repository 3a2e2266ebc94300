"""Checks of `attention_weights` and `attend`. With keys one channel wide √D is 1, so that its slip costs once."""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_close, expect_raises

from autograder.checks import Registry

from .inputs import agrees, own_weights

checks = Registry()
check = checks.check

FLOAT32_WEIGHT = 1e-5
"""A float32 logit below 8 is off by less than 16 · 2^-24, and moves its weight by at most that share, 1e-6; the
check of `float64` is the one that asks for more."""

FLOAT64_OUTPUT = 1e-12
"""Outputs are averages of values of a few units, by weights that are off by 2^-50: 1e-14."""

FLOAT64_WEIGHT = 1e-12
"""A float64 logit below 64 is off by less than 64 · 2^-52, and moves its weight by at most that share, 1.5e-14."""


@check(
    "attention_weights-softmax",
    points=1,
    catches="normalises over the wrong axis, over all queries together, or over no axis at all",
    hint="the weights of each query add up to 1: normalise along the last axis of the logits",
)
def weights_are_the_softmax_of_the_logits(student: Any, cases: Any) -> None:
    """Each query's weights are the softmax of its own logits, with or without axes before."""
    for heads, n, n_tokens in (((), 1, 2), ((), 4, 7), ((3,), 2, 5), ((2, 3), 5, 1), ((), 7, 7)):
        q, keys = _narrow(cases, heads, n, n_tokens)
        expected = fp4kv.attention_weights(q, keys)
        expect_close(student.attention_weights(q, keys), expected, FLOAT32_WEIGHT, given={"q": q, "keys": keys})


@check(
    "attention_weights-scaled",
    points=1,
    catches="forgets to divide the logits by √D, or divides by D or by √T",
    hint="D is the width of a key: q.shape[-1]",
)
def logits_are_divided_by_the_root_of_the_width(student: Any, cases: Any) -> None:
    """Logits are q·k divided by √D, D being the width of a key."""
    for width in (4, 9, *map(int, cases.rng.integers(16, 128, 3))):
        q, keys = np.float32(cases.rng.normal(size=(3, width))), np.float32(cases.rng.normal(size=(6, width)))
        expected = fp4kv.attention_weights(q, keys)
        expect_close(student.attention_weights(q, keys), expected, FLOAT32_WEIGHT, given=f"keys of width {width}")


@check(
    "attention_weights-float64",
    points=1,
    catches="computes the logits in the float32 of its arguments",
    hint="turn q and keys into float64 before they are multiplied",
)
def everything_is_computed_in_float64(student: Any, cases: Any) -> None:
    """Products of float32 arguments are taken in float64."""
    for _ in range(3):
        q, keys = _narrow(cases, (), 3, 6)
        q = np.float32(np.sign(q) * cases.rng.uniform(3, 8, q.shape))
        expected = fp4kv.attention_weights(q, keys)
        expect_close(student.attention_weights(q, keys), expected, FLOAT64_WEIGHT, given={"q": q, "keys": keys})


@check(
    "attention_weights-large",
    points=1,
    catches="takes the exponential of a large logit, which overflows",
    hint="subtract each query's largest logit first: softmax does not notice",
)
def no_logit_is_too_large(student: Any, cases: Any) -> None:
    """Logits of ±10,000 and more give finite weights that add up to 1."""
    for size in (800.0, 1e4, 1e8):
        q, keys = np.float32([[1], [-1]]), np.float32(size + 16 * cases.rng.integers(0, 2, (4, 1)))  # exact in float32
        expected = fp4kv.attention_weights(q, keys)
        expect_close(student.attention_weights(q, keys), expected, FLOAT32_WEIGHT, given={"q": q, "keys": keys})


@check(
    "attention_weights-visible",
    points=1,
    catches="multiplies logits or weights by the mask and does not normalise again, or hides what is visible",
    hint="a hidden key takes no part: give it the logit -infinity before the softmax",
)
def hidden_keys_have_no_weight(student: Any, cases: Any) -> None:
    """A hidden key has weight 0, and those that are seen share all of it."""
    for heads, n, n_tokens in (((), 3, 5), ((2,), 4, 9), ((), 6, 6)):
        q, keys = _narrow(cases, heads, n, n_tokens)
        seen = _mask(cases, n, n_tokens)
        expected = fp4kv.attention_weights(q, keys, seen)
        got = student.attention_weights(q, keys, seen)
        expect_close(got, expected, FLOAT32_WEIGHT, given={"q": q, "keys": keys, "is_visible": seen})


@check(
    "attention_weights-mask_value",
    points=1,
    catches="hides a key by a large negative number that a visible logit can go below, or after the softmax",
    hint="only -infinity is below every logit",
)
def hidden_keys_have_no_weight_whatever_the_logits(student: Any, cases: Any) -> None:
    """However far below the others the visible logits are, hidden keys have weight 0."""
    for size in (1.5e2, 1.5e5, 1e10, 1e15, 1.5e19):  # products that float32 still holds
        gap = float(cases.rng.uniform(1, 2))
        q, keys = np.float32([[size]]), np.float32([[-size], [gap / size], [-size], [-size]])
        is_visible = np.array([cases.rng.permutation([True, False, False, False])])
        keys[is_visible[0]] = -size  # one alone: however its weight is computed, it is 1
        expected = fp4kv.attention_weights(q, keys, is_visible)
        got = student.attention_weights(q, keys, is_visible)
        expect_close(got, expected, FLOAT32_WEIGHT, given={"q": q, "keys": keys, "is_visible": is_visible})


@check(
    "attention_weights-refuses",
    points=1,
    catches="divides zero by zero where a query sees nothing",
    hint="is_visible.any(axis=-1) tells which queries see a key",
)
def a_query_that_sees_nothing_is_refused(student: Any, cases: Any) -> None:
    """A query that sees no key is refused with a ValueError that names the first such query."""
    for n, n_tokens in ((4, 3), (30, 5)):
        q, keys = _narrow(cases, (), n, n_tokens)
        seen = _mask(cases, n, n_tokens)
        blind = int(cases.rng.integers(1, n - 1))
        seen[[blind, n - 1]] = False
        given = {"is_visible": seen}
        expect_raises(
            ValueError, lambda q=q, keys=keys, seen=seen: student.attention_weights(q, keys, seen), given, (blind,)
        )


@check(
    "attend-average",
    points=1,
    catches="averages along the wrong axis, loses the axes before, or rounds to float32",
    hint="the output of a query is the sum of its weights times the values: one matrix product, in float64",
    uses=("attention_weights",),
)
def outputs_are_weighted_averages(student: Any, cases: Any) -> None:
    """Each output is the average of the values under that query's weights, one for each head."""
    for heads, n, n_tokens, width in (((), 1, 2, 1), ((), 3, 5, 8), ((2,), 4, 4, 4), ((2, 3), 1, 6, 3), ((), 2, 40, 5)):
        q, keys = _narrow(cases, heads, n, n_tokens)
        values = np.float32(cases.rng.normal(size=(*heads, n_tokens, width)))
        expected, got = fp4kv.attend(q, keys, values), student.attend(q, keys, values)
        try:
            expect_close(got, expected, FLOAT64_OUTPUT, given={"q": q, "keys": keys, "values": values})
        except Mismatch:  # a slip in the student's own weights has cost its points already
            if not agrees(got, own_weights(student, q, keys) @ values.astype(np.float64), FLOAT64_OUTPUT):
                raise


@check(
    "attend-visible",
    points=1,
    catches="does not hand the mask on",
    hint="attention_weights takes is_visible",
    uses=("attention_weights",),
)
def hidden_values_do_not_count(student: Any, cases: Any) -> None:
    """What a query does not see has no part in its output."""
    q, keys = _narrow(cases, (2,), 4, 6)
    values = np.float32(cases.rng.normal(size=(2, 6, 3)))
    seen = cases.rng.permutation(~np.eye(4, 6, dtype=bool))  # each query misses a key that the others see
    expected = fp4kv.attend(q, keys, values, seen)
    got = student.attend(q, keys, values, seen)
    try:
        expect_close(got, expected, 8 * FLOAT32_WEIGHT, given={"q": q, "keys": keys, "is_visible": seen})
    except Mismatch:  # a slip in the student's own weights has cost its points already
        if not agrees(got, own_weights(student, q, keys, seen) @ values):
            raise


def _narrow(cases: Any, heads: tuple[int, ...], n: int, n_tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Return queries and keys of width 1, with logits of a few units."""
    q = cases.rng.choice([-1, 1], (*heads, n, 1)) * cases.rng.uniform(0.5, 2, (*heads, n, 1))
    return np.float32(q), np.float32(cases.rng.normal(size=(*heads, n_tokens, 1)))


def _mask(cases: Any, n: int, n_tokens: int) -> np.ndarray:
    """Return a mask that shows something to every query, and one token to none."""
    seen = cases.rng.random((n, n_tokens)) < 0.5
    dark = int(cases.rng.integers(n_tokens))
    seen[:, dark] = False
    seen[np.arange(n), (dark + 1 + cases.rng.integers(0, n_tokens - 1, n)) % n_tokens] = True
    return seen
