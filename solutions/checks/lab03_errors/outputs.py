"""Checks of `output_error_bound`: a guarantee on every case, and no more than the formula where it can tell something.

Each term of the formula has a check: values that move while no weight does (q = 0), weights that move while no value
does, the radii inside the diameter. Where keys, codes or weights of the student are wrong already, an answer that is
the formula over them passes (`own` parts).
"""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_dtype_and_shape, expect_values
from labkit.formats import E4M3_MAX, E4M3_MIN_SUBNORMAL, QuantisedE2M1
from labkit.tensors import load_keys, load_queries, load_values

from autograder.checks import Registry

from .caches import one_large, scaled_queries, sink
from .inputs import (
    NEAR_EDGE,
    RADIUS,
    TIGHT,
    agrees,
    expect_bound,
    own,
    own_radii,
    own_weights,
    packed,
    peaks,
    plain_codes,
    power_scales,
    true_errors,
    turned_keys,
)

checks = Registry()
check = checks.check

OWN_PARTS = ("error_radius", "logit_error_bound", "weight_error_bound", "attention_weights")

ABOVE_PEAK = 6.3
"""The largest element of a group under a scale of 1: 6.3/6 = 1.05 is rounded to 1, and 6.375 is the end."""

HALF_CELL_OF_3 = 0.5
"""How far code 5 reaches to either side, in units of the scale."""

CLIPPED = 9.0
"""The end of what code 7 takes under the smallest scale, in units of it."""


@check(
    "output_error_bound-values",
    points=1,
    catches="drops the values' own errors, averages them as if they were random, or takes the largest",
    hint="with q = 0 no weight moves: what remains is Σ p̂_i ‖r_i‖",
    uses=OWN_PARTS,
)
def values_move_by_their_average_radius(student: Any, cases: Any) -> None:
    """Where q is 0 no weight moves, and the bound is the average of the values' radii ‖r_i‖."""
    for n_tokens, width in ((1, 16), (6, 16), (33, 48)):
        at = peaks(cases, width)
        units = 1.5 + RADIUS * NEAR_EDGE + np.zeros((n_tokens, width))  # every value errs to the same side
        units[:, at] = ABOVE_PEAK
        values = np.float32(units * cases.rng.permutation(2.0 ** (np.arange(n_tokens) % 6 - 3))[:, None])
        q, keys = np.zeros((2, 32), np.float32), np.float32(cases.rng.uniform(0, 1, (n_tokens, 32)))
        _expect_bound(student, q, keys, values, is_tight=True)
        values = np.float32((1.5 + RADIUS * NEAR_EDGE) * E4M3_MIN_SUBNORMAL + np.zeros((n_tokens, width)))
        _expect_bound(student, q, keys, values, is_tight=True)  # no larger element: every one errs by its radius


@check(
    "output_error_bound-weights",
    points=1,
    catches="averages the radii with equal weights, or with those of keys that were not decoded",
    hint="p̂ are the weights that the decoded keys give",
    uses=OWN_PARTS,
)
def radii_count_by_the_decoded_weights(student: Any, cases: Any) -> None:
    """Each radius counts as much as the weight that the decoded keys give its token."""
    for heavy in (0.25, 4.0):  # the sink's values are smaller than the others', or larger
        q, keys = sink(cases, n_tokens=9)
        values = np.zeros((9, 32), np.float32)
        values[:, peaks(cases, 32)] = 6
        values[0] *= np.float32(heavy)
        q, keys = q * np.float32(heavy), keys / np.float32(heavy)  # the same logits under another scale
        try:
            _expect_bound(student, q, keys, values, is_tight=True)
        except Mismatch:  # of the first term nothing is asked here
            if not _differs_by_the_weights(student, q, keys, values):
                raise


@check(
    "output_error_bound-moved",
    points=2,
    catches="takes first order only, a quarter of the spread, or an average where the worst case counts",
    hint="the weights can move by weight_error_bound(logit_error_bound(q, keys)), from one value to the farthest",
    uses=OWN_PARTS,
)
def weights_move_by_the_worst_case(student: Any, cases: Any) -> None:
    """Where the two heaviest weights change places, the bound is not below what that does to the output."""
    for epsilon, n_others in ((0.3, 0), (1.0, 0), (2.0, 0), (4.0, 0), (3.0, 9), (5.0, 150)):
        q, keys = turned_keys(cases, epsilon, n_others)
        values = np.zeros((len(keys), 32), np.float32)
        values[0], values[1] = 6, -6
        edge, others = n_others // 12, np.arange(n_others) + 2
        far = [*others[:edge], 1, *others[edge : n_others - edge], 0, *others[n_others - edge :]]
        queries = q if n_others else np.concatenate([q / np.float32(4), q])
        _expect_bound(student, queries, keys[far], values[far])
        for again in (0, 1):  # two tokens alike have the largest weights, and no distance
            twice = [0, 1, again]
            _expect_bound(student, queries, keys[twice], values[twice])


def _expect_both_terms(student: Any, cases: Any) -> None:
    """Move the weights, and both values along the line between them: the two terms add up."""
    for epsilon in (0.3, 1.0):
        q, keys = turned_keys(cases, epsilon)
        was_on_first = fp4kv.attention_weights(q, keys)[0, 0] > 0.5
        side = 1 if was_on_first else -1
        values = np.repeat([[3.0], [-3.0]], 16, axis=1) + side * HALF_CELL_OF_3 * NEAR_EDGE
        _expect_bound(student, q, keys, np.float32(values * E4M3_MIN_SUBNORMAL))  # a scale that needs no larger element
        values = np.repeat([[CLIPPED * NEAR_EDGE], [0.5 - RADIUS * NEAR_EDGE]], 16, axis=1)  # decoded to 6 and 0.5
        both = values if was_on_first else values[::-1]  # the weight was on the one that is known worst
        _expect_bound(student, q, keys, np.float32(both * E4M3_MIN_SUBNORMAL))


@check(
    "output_error_bound-diameter",
    points=1,
    catches="measures the distance of decoded values, which can have been farther apart",
    hint="the values that were quantised are up to ‖v̂_i - v̂_j‖ + ‖r_i‖ + ‖r_j‖ apart",
    uses=OWN_PARTS,
)
def values_can_have_been_farther_apart(student: Any, cases: Any) -> None:
    """The weight moves to where a value was, not to where it is decoded."""
    for epsilon in (8.0, 12.0):  # all of the weight moves
        q, keys = turned_keys(cases, epsilon)
        to_first = fp4kv.attention_weights(q, keys)[0, 0] > 0.5
        values = np.zeros((2, 16), np.float32)
        values[0 if to_first else 1] = 1.5 + RADIUS * NEAR_EDGE
        values[:, peaks(cases, 16)] *= np.float32(ABOVE_PEAK / (1.5 + RADIUS * NEAR_EDGE))
        _expect_bound(student, q, keys, values)


@check(
    "output_error_bound-guarantee",
    points=1,
    catches="bounds what happens to Gaussian data only",
    hint="compare with attend on keys and values before they are quantised: no error may be larger",
    uses=OWN_PARTS,
)
def no_output_moves_further(student: Any, cases: Any) -> None:
    """On keys and values of every kind, real ones too, no output moves further than its bound."""
    for n_tokens, width in ((1, 32), (2, 16), (65, 48)):
        q = np.float32(cases.rng.normal(size=(3, width)) * [[1], [4], [30]])
        keys, values = np.float32(cases.rng.normal(size=(2, n_tokens, width)) * 2.0 ** cases.rng.integers(-9, 4))
        large = np.clip(400 * np.float32(cases.rng.normal(size=values.shape)), -2500, 2500)
        _expect_bound(student, q, keys, values)
        _expect_bound(student, q, np.tile(keys[:1], (n_tokens, 1)), values * np.float32(2.0**-8))
        _expect_bound(student, q, keys, large)
    layer, head = int(cases.rng.choice([0, 10, 23])), int(cases.rng.integers(3))
    rows = slice(0, 64)  # from token 0, the sink
    q = load_queries(layer)[:4, 3 * head]
    _expect_bound(student, q, load_keys(layer)[rows, head], load_values(layer)[rows, head])
    _expect_both_terms(student, cases)


@check(
    "output_error_bound-tight",
    points=2,
    catches="is a constant, a product of norms without the softmax, or looser than the formula",
    hint="tanh(ε/2) · diam + Σ p̂_i ‖r_i‖: print both terms beside yours",
    uses=OWN_PARTS,
)
def it_is_at_most_the_formula(student: Any, cases: Any) -> None:
    """The bound is at most tanh(ε/2) · diam + Σ p̂_i ‖r_i‖ where tanh(ε/2) is at most ½; a lower valid one passes."""
    for n_tokens, width in ((1, 32), (2, 16), (7, 48), (40, 64)):
        at = peaks(cases, 32)
        codes = plain_codes(cases, (n_tokens, 32))
        codes[:, at] = 7
        keys = packed(codes, power_scales(cases, (n_tokens, 2)))
        values = packed(plain_codes(cases, (n_tokens, width)), np.full((n_tokens, width // 16), 1.25))  # radii alike
        q = scaled_queries(cases, keys, at)
        _expect_tight(student, q, keys, values)
        alike = packed(np.tile(keys.codes[:1], (n_tokens, 1)), np.tile(keys.scales[:1], (n_tokens, 1)))
        q = scaled_queries(cases, alike, at)
        _expect_tight(student, q, alike, packed(values.codes * 0, one_large(cases, values.scales)))


@check(
    "output_error_bound-unbounded",
    points=1,
    catches="turns infinity into NaN, or gives up where keys alone have no radius",
    hint="a value without a radius can have been anywhere; a weight cannot move by more than 1",
    uses=OWN_PARTS,
)
def infinite_if_a_value_has_no_radius(student: Any, cases: Any) -> None:
    """Infinite if a value has no radius; where only keys have none, the weights still move by 1 at most."""
    plain = [packed(plain_codes(cases, (3, 16)), np.ones((3, 1))) for _ in range(2)]
    top = int(cases.rng.integers(16))
    clipped = [packed(part.codes.copy(), [[1], [E4M3_MAX], [1]]) for part in plain]
    for part in clipped:
        part.codes[1, top] = 7
    q = np.float32(cases.rng.uniform(0.01, 0.02, (3, 16)))  # even under a scale of 448 no logit is large
    q[1] = 0
    _expect_unbounded(student, q, plain[0], clipped[1], np.full(3, np.inf))
    far = packed([[3] * 16, [1] * 16, [3] * 16], np.ones((3, 1)))  # under q = 900 the middle one has weight 0
    _expect_unbounded(student, np.full((1, 16), 900, np.float32), far, clipped[1], np.array([np.inf]))
    _expect_unbounded(student, q[::2], clipped[0], plain[1], np.zeros(2))


def _expect_unbounded(
    student: Any, q: np.ndarray, keys: QuantisedE2M1, values: QuantisedE2M1, expected: np.ndarray
) -> None:
    """Expect infinity where `expected` has it and a number of any size elsewhere."""
    given = _tell(q, keys, values)
    got = expect_dtype_and_shape(student.output_error_bound(q, keys, values), expected, given, any_width=True)
    try:
        expect_values(np.where(np.isfinite(got), 0.0, got).astype(np.float64), expected, given=given)
    except Mismatch:
        if not agrees(got, _own_bound(student, q, keys, values)):
            raise


def _differs_by_the_weights(student: Any, q: np.ndarray, keys: np.ndarray, values: np.ndarray) -> bool:
    """Tell whether the bound changes as it must when two values change places: the first term stays what it is."""
    packed_keys, packed_values = fp4kv.quantise_e2m1(keys), fp4kv.quantise_e2m1(values)
    other = packed(*(np.roll(part, 1, axis=0) for part in packed_values[:2]))
    weights = fp4kv.attention_weights(q, fp4kv.dequantise(packed_keys))
    radii = np.linalg.norm(fp4kv.error_radius(packed_values), axis=-1)
    expected = weights @ (radii - np.roll(radii, 1))
    answers = [student.output_error_bound(q, packed_keys, part) for part in (packed_values, other)]
    got = [expect_dtype_and_shape(answer, expected, "", any_width=True) for answer in answers]
    with np.errstate(invalid="ignore"):
        return bool(np.all(np.abs(got[0] - got[1] - expected) <= (TIGHT - 1) * np.abs(expected)))


def _expect_bound(student: Any, q: np.ndarray, keys: np.ndarray, values: np.ndarray, is_tight: bool = False) -> None:
    """Hold a bound against the error of a real round trip, and with `is_tight` against the formula too."""
    packed_keys, packed_values, errors = true_errors(q, keys, values)
    formula = fp4kv.output_error_bound(q, packed_keys, packed_values) if is_tight else None
    got = student.output_error_bound(q, packed_keys, packed_values)
    _expect(student, got, q, packed_keys, packed_values, errors, formula)


def _expect(
    student: Any,
    got: Any,
    q: np.ndarray,
    keys: QuantisedE2M1,
    values: QuantisedE2M1,
    errors: Any = None,
    formula: Any = None,
) -> None:
    try:
        expect_bound(got, _tell(q, keys, values), errors, formula)
    except Mismatch:
        if not agrees(got, _own_bound(student, q, keys, values)):
            raise


def _own_bound(student: Any, q: np.ndarray, keys: QuantisedE2M1, values: QuantisedE2M1) -> np.ndarray:
    """Return the formula over what the student's own functions give: a slip in one has cost its points already."""
    decoded = fp4kv.dequantise(values).astype(np.float64)
    radii = np.linalg.norm(own_radii(student, values), axis=-1)
    scales = np.repeat(keys.scales.astype(np.float64), 16, axis=-1)
    least = RADIUS * np.abs(q.astype(np.float64)) @ scales.T / np.sqrt(q.shape[-1])
    logits = own(student.logit_error_bound(q, keys), fp4kv.logit_error_bound(q, keys), least)
    moved = own(student.weight_error_bound(logits), fp4kv.weight_error_bound(logits))
    weights = own_weights(student, q, fp4kv.dequantise(keys))

    reach = np.linalg.norm(decoded[:, None] - decoded, axis=-1) + radii[:, None] + radii
    np.fill_diagonal(reach, 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(moved * reach.max() + weights @ radii)


def _expect_tight(student: Any, q: np.ndarray, keys: QuantisedE2M1, values: QuantisedE2M1) -> None:
    formula = fp4kv.output_error_bound(q, keys, values)
    _expect(student, student.output_error_bound(q, keys, values), q, keys, values, formula=formula)


def _tell(q: np.ndarray, keys: QuantisedE2M1, values: QuantisedE2M1) -> dict[str, Any]:
    return {"q": q, "keys": keys.codes, "values": values.codes, "their scales": [keys.scales.shape]}
