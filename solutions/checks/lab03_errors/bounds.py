"""Checks of `logit_error_bound` and `weight_error_bound`: above every error that occurs, as low as the formula."""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_close, expect_dtype_and_shape, expect_values, plain_array, show_given
from labkit.formats import E4M3_MAX, QuantisedE2M1

from autograder.checks import Registry

from .inputs import (
    agrees,
    expect_bound,
    keys_at_edges,
    own,
    own_radii,
    packed,
    peaks,
    plain_codes,
    power_scales,
)

checks = Registry()
check = checks.check

SHAPES = ((1, 1, 16), (2, 5, 32), (4, 33, 48), (3, 7, 64))
"""Queries, tokens, widths."""


@check(
    "logit_error_bound-guarantee",
    points=1,
    catches="lets channels of q cancel, takes their mean, or divides by too much",
    hint="the worst key goes to the side of q in every channel: |q_c| · r_c · s_c, added up, over √D",
    uses=("error_radius",),
)
def no_logit_moves_further(student: Any, cases: Any) -> None:
    """No logit moves further than its bound, whatever the sign of q."""
    for n, n_tokens, width in SHAPES:
        q, at = _queries(cases, n, width)
        for worst in range(n):
            keys = keys_at_edges(cases, n_tokens, q[worst], at)
            quantised = fp4kv.quantise_e2m1(keys)
            moved = (q.astype(np.float64) @ (keys.astype(np.float64) - fp4kv.dequantise(quantised)).T) / np.sqrt(width)
            _expect_logit_bound(student, q, quantised, errors=np.abs(moved))


@check(
    "logit_error_bound-tight",
    points=2,
    catches="takes the product of norms, where each channel has its own radius, or forgets the √D",
    hint="‖q‖ · ‖r‖ is a bound too, but a higher one: add up |q_c| · r_c channel by channel",
    uses=("error_radius",),
)
def it_is_the_sum_over_channels(student: Any, cases: Any) -> None:
    """The bound is at most the sum over channels, Σ|q_c| r_c s_c / √D."""
    for n, n_tokens, width in SHAPES:
        q, at = _queries(cases, n, width)
        codes = plain_codes(cases, (n_tokens, width))
        codes[:, at] = 7
        quantised = packed(codes, power_scales(cases, (n_tokens, width // 16)))
        _expect_logit_bound(student, q, quantised, formula=fp4kv.logit_error_bound(q, quantised))


@check(
    "logit_error_bound-unbounded",
    points=1,
    catches="turns 0 times infinity into NaN, or bounds a logit that has no bound",
    hint="leave out the channels in which q is 0 before you multiply",
    uses=("error_radius",),
)
def infinity_where_q_meets_it(student: Any, cases: Any) -> None:
    """Infinite exactly where q meets an element without a radius: a channel in which q is 0 counts nothing."""
    q = np.float32(cases.rng.choice([-1, 1], (4, 32)) * cases.rng.uniform(0.5, 2, (4, 32)))
    at = np.array([1, 16]) + 2 * cases.rng.integers(0, 8, 2)
    q[:, at] = [[0, 0], [1.5, 0], [0, -0.5], [1e-15, 0]]  # however little: 0 alone counts nothing
    codes = plain_codes(cases, (4, 32))
    codes[:, at] = 7
    scales = power_scales(cases, (4, 2))
    scales[0, 0] = scales[2, 1] = E4M3_MAX
    quantised = packed(codes, scales)
    got = expect_dtype_and_shape(
        student.logit_error_bound(q, quantised), np.zeros((4, 4)), _tell(q, quantised), any_width=True
    )
    expected = np.where(np.isposinf(fp4kv.logit_error_bound(q, quantised)), np.inf, 0)
    try:
        expect_values(np.where(np.isfinite(got), 0.0, got).astype(np.float64), expected, given=_tell(q, quantised))
        expect_values(got == 0, np.zeros((4, 4), bool), given=_tell(q, quantised))  # NaN turned to 0, of all places
    except Mismatch:
        if not agrees(got, _own_logit_bound(student, q, quantised)):
            raise


@check(
    "weight_error_bound-tanh",
    points=1,
    catches="takes ε/2 itself, tanh(ε), (e^(2ε) - 1)/2 or a quarter of the spread",
    hint="with two equal errors e, ε is e: the bound is tanh(e / 2)",
)
def equal_errors_give_tanh_of_half(student: Any, cases: Any) -> None:
    """Where both of two logits can move by ε, the bound is tanh(ε/2)."""
    size = np.append(cases.rng.uniform(0.05, 4, 9), [0.0, 60.0, np.inf])
    errors = np.repeat(size[:, None], 2, axis=1)  # of two, so that it does not matter how many count
    formula = np.tanh(size / 2)
    expect_bound(student.weight_error_bound(errors), {"logit_errors": errors}, formula, formula)


@check(
    "weight_error_bound-two_largest",
    points=2,
    catches="takes the largest error for ε, all of them, or their mean",
    hint="what moves two logits apart? The largest error on one side and the next largest on the other",
)
def only_the_two_largest_count(student: Any, cases: Any) -> None:
    """ε is half the sum of the two largest errors, wherever they stand."""
    for n_tokens in (2, 3, 5, 64):
        errors = cases.rng.uniform(0, 1, (6, n_tokens)) * cases.rng.uniform(0.1, 2, (6, 1))
        errors[:3] = cases.rng.permuted(errors[:3] ** 4, axis=1)  # one that towers over the others
        means = np.sort(errors, axis=1)[:, -2:].mean(axis=1)
        equal = np.repeat(means[:, None], n_tokens, axis=1)
        _expect_same_bounds(student, errors, equal)


@check(
    "weight_error_bound-lone",
    points=1,
    catches="looks for a second largest error where there is one token",
    hint="a lone key has weight 1, and a common shift of all logits changes nothing",
    per_student=False,
)
def a_lone_key_keeps_its_weight(student: Any, cases: Any) -> None:
    """A lone key keeps its weight of 1: the bound is 0."""
    errors = np.array([[0.3], [5.0], [0.0]])
    expect_close(student.weight_error_bound(errors), np.zeros(3), 0, given={"logit_errors": errors})


@check(
    "weight_error_bound-argument",
    points=1,
    catches="sorts the caller's array in place",
    hint="np.sort returns a new array; errors.sort() does not",
)
def the_argument_stays_as_it_was(student: Any, cases: Any) -> None:
    """The array that was handed over is the same after the call."""
    errors = cases.rng.uniform(0, 1, (4, 9))
    got, (after,) = student.weight_error_bound.and_arguments(errors.copy())
    expect_dtype_and_shape(got, np.zeros(4), {"logit_errors": errors}, any_width=True)
    expect_values(after, errors, given="the argument after the call")


def _expect_same_bounds(student: Any, errors: np.ndarray, equal: np.ndarray) -> None:
    """Expect the bound of `errors` to be that of `equal`, by the student's own count: tanh is checked elsewhere."""
    got = plain_array(student.weight_error_bound(errors))
    if agrees(got, fp4kv.weight_error_bound(errors)):
        return
    expected = own(student.weight_error_bound(equal), fp4kv.weight_error_bound(equal))
    larger = own(student.weight_error_bound(equal * 1.5), fp4kv.weight_error_bound(equal * 1.5))
    if not np.all(larger > expected):
        raise Mismatch("a larger bound where every error is larger", show_given(larger), "1.5 times the errors")
    limits = {"logit_errors": errors}
    expect_bound(got, limits, errors=expected, formula=expected)


def _expect_logit_bound(
    student: Any, q: np.ndarray, keys: QuantisedE2M1, errors: Any = None, formula: Any = None
) -> None:
    got = student.logit_error_bound(q, keys)
    try:
        expect_bound(got, _tell(q, keys), errors, formula)
    except Mismatch:
        if not agrees(got, _own_logit_bound(student, q, keys)):
            raise


def _own_logit_bound(student: Any, q: np.ndarray, keys: QuantisedE2M1) -> np.ndarray:
    """Return the bound that the student's own radii give: a slip in them has cost its points already."""
    radii = own_radii(student, keys)
    with np.errstate(invalid="ignore"):
        parts = np.abs(q.astype(np.float64))[:, None] * radii
    return np.asarray(np.where(q[:, None] == 0, 0, parts).sum(axis=-1) / np.sqrt(q.shape[-1]))


def _queries(cases: Any, n: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return queries of uneven size and either sign, and the channels in which they are 0: one in each group."""
    at = peaks(cases, width)
    q = cases.rng.normal(size=(n, width)) * 2.0 ** cases.rng.uniform(-3, 3, (n, width))
    q[:, at] = 0
    return np.float32(q), at


def _tell(q: np.ndarray, keys: QuantisedE2M1) -> dict[str, Any]:
    return {"q": q, "codes": keys.codes, "scales": keys.scales}
