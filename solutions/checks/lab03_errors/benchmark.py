"""Checks of the section *benchmark*: values only, never times."""

import itertools
from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_close, expect_raises, expect_values, plain_array
from labkit.schemes import SCHEMES, Placement, SweepRow

from autograder.checks import Registry, as_member

from .inputs import agrees, own_weights

checks = Registry()
check = checks.check

SWEEP_ROOM = 2e-3
"""Relative room for outputs in float32: 2^-24 of an output beside an error of at least 2^-12 of it (FP16), and the
square of that beside the square."""

EXACT_EVERYWHERE = 6.0
"""Times a power of two, a magnitude that every scheme gives back when a group has no other: E2M1's largest value, a
level of every integer's amax, one significant bit beside the leading one."""

NOTHING = 1e-6
"""What an error of zero may come to where one side computes in float32."""

A_LITTLE = 2.0**-18
"""A sixteenth of it is 2^-22 of the weight: less than a tolerance of 1e-6 sees, 16 steps of float32 at 3/16."""

MOST_ROWS = 100
"""More rows than this are not looked at."""


@check(
    "attention_error_sweep-rows",
    points=1,
    catches="mixes up the order of schemes and placements, or their bits",
    hint="for scheme in SCHEMES, and inside it for placement in Placement",
)
def one_row_for_each_scheme_and_placement(student: Any, cases: Any) -> None:
    """One row for each scheme and, within it, each placement, in their order, with name and bits."""
    expected = [(scheme.name, placement, scheme.bits_per_element) for scheme in SCHEMES for placement in Placement]
    rows = _rows(student.attention_error_sweep(*_cache(cases)))
    for index, (row, wanted) in enumerate(itertools.zip_longest(rows, expected)):
        if row is None or wanted is None or tuple(row[:3]) != wanted:
            raise Mismatch(f"{wanted}", f"{row and tuple(row[:3])}", f"row {index} of {len(rows)}")


@check(
    "attention_error_sweep-error",
    points=2,
    catches="averages ratios, divides by the wrong norm, or takes the largest",
    hint="add up squares over all heads, queries and channels first; one quotient and one root at the end",
    uses=("attention_weights",),
)
def errors_are_relative_to_the_whole_output(student: Any, cases: Any) -> None:
    """The error of both placements together is √(Σ(ô - o)² / Σo²) over all outputs."""
    q, keys, values = _cache(cases)
    got = _errors(_rows(student.attention_error_sweep(q, keys, values)), Placement.BOTH)
    expected = _errors(fp4kv.attention_error_sweep(q, keys, values), Placement.BOTH)
    try:
        expect_close(got, expected, SWEEP_ROOM * expected, given=f"queries {q.shape}, values {values.shape}")
    except Mismatch:
        if not agrees(got, _own_errors(student, q, keys, values)):
            raise


@check(
    "attention_error_sweep-placements",
    points=1,
    catches="quantises values too where only keys are asked for, or mixes up the two",
    hint="keys only: weights of decoded keys, values as they were; values only: the other way round",
)
def each_placement_leaves_the_other_side_alone(student: Any, cases: Any) -> None:
    """Keys only leaves the values as they were, values only the keys."""
    q, keys, values = (x[:1] for x in _cache(cases))
    for exact in (Placement.KEYS, Placement.VALUES):
        sides = {Placement.KEYS: keys, Placement.VALUES: values}
        signs = cases.rng.choice(np.float32([-1, 1]), sides[exact].shape)
        sides[exact] = signs * np.float32(EXACT_EVERYWHERE * 2.0**-3)
        rows = _rows(student.attention_error_sweep(q[:, :1], sides[Placement.KEYS], sides[Placement.VALUES]))
        (other,) = set(sides) - {exact}
        both = _errors(rows, Placement.BOTH)
        expect_close(_errors(rows, exact), np.zeros(len(SCHEMES)), NOTHING, given=f"{exact.value}, which are exact")
        expect_close(_errors(rows, other), both, NOTHING + SWEEP_ROOM * both, given=f"{other.value}; the rest is exact")


@check(
    "attention_error_sweep-visible",
    points=1,
    catches="does not hand the mask on",
    hint="every call of attention_weights or attend takes is_visible",
    uses=("attention_weights",),
)
def hidden_tokens_change_no_error(student: Any, cases: Any) -> None:
    """Tokens that no query sees change no error."""
    q, keys, values = _cache(cases)
    n_seen = int(cases.rng.integers(10, 16))
    is_visible = np.tile(np.arange(keys.shape[-2]) < n_seen, (q.shape[-2], 1))
    got = _rows(student.attention_error_sweep(q, keys, values, is_visible))
    short = _rows(student.attention_error_sweep(q, keys[:, :n_seen], values[:, :n_seen]))
    for placement in Placement:
        expected = _errors(short, placement)
        if not np.all(expected[1:] > 0):
            raise Mismatch("errors above 0", f"{expected}", placement.value)
        try:
            expect_close(_errors(got, placement), expected, SWEEP_ROOM * expected, given=f"{n_seen} of 24 tokens seen")
        except Mismatch:
            if not agrees(_errors(got, Placement.BOTH), _own_errors(student, q, keys, values, is_visible)):
                raise


def _cache(cases: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return queries, keys and values of two heads, outputs of one several times as large as those of the other."""
    q = np.float32(cases.rng.normal(size=(2, 5, 32)) * 2)
    keys = np.float32(cases.rng.normal(size=(2, 24, 32)))
    values = np.float32((cases.rng.normal(size=(2, 24, 64)) + 0.5) * [[[1]], [[5]]])
    return q, keys, values


def _rows(got: Any) -> list[SweepRow]:
    """Return the rows of a sweep, if they are rows: name, placement, bits, error."""
    if not isinstance(got, list | tuple):
        raise Mismatch("a list of SweepRow", f"a {type(got).__name__}")
    if len(got) > MOST_ROWS:
        raise Mismatch(f"{len(SCHEMES) * len(Placement)} rows", f"{len(got)}")
    return [_row(row) for row in got]


def _row(row: Any) -> SweepRow:
    if not isinstance(row, tuple) or len(row) != 4 or not isinstance(row[0], str):
        raise Mismatch("SweepRow(scheme, placement, bits_per_element, error)", f"a {type(row).__name__}")
    bits, error = (plain_array(part) for part in row[2:])
    if bits.size != 1 or error.size != 1:
        raise Mismatch("one number of bits and one error in a row", f"{bits.size} and {error.size}")
    placement = Placement.__members__.get(row[1]) if isinstance(row[1], str) else row[1]  # its name will do
    return SweepRow(row[0], as_member(Placement, placement), float(bits.item()), float(error.item()))


def _errors(rows: list[SweepRow], placement: Placement) -> np.ndarray:
    """Return the errors of one placement, in the order of the schemes, wherever the rows stand."""
    found = {row.scheme: row.error for row in rows if row.placement is placement}
    if missing := [scheme.name for scheme in SCHEMES if scheme.name not in found]:
        raise Mismatch(f"a row for {missing[0]}, {placement.value}", "none")
    return np.array([found[scheme.name] for scheme in SCHEMES])


def _own_errors(
    student: Any, q: np.ndarray, keys: np.ndarray, values: np.ndarray, *is_visible: np.ndarray
) -> np.ndarray:
    """Return what the student's own weights give: a slip in them has cost its points already."""
    exact = own_weights(student, q, keys, *is_visible) @ values
    outputs = [
        own_weights(student, q, scheme.round_trip(keys), *is_visible) @ scheme.round_trip(values) for scheme in SCHEMES
    ]
    return np.array([np.linalg.norm(output - exact) / np.linalg.norm(exact) for output in outputs])


@check(
    "span_rank-mass",
    points=1,
    catches="ranks spans by their largest weight, or by the wrong tokens",
    hint="reshape to (queries, spans, tokens of a span) and add up the last axis",
)
def spans_are_ordered_by_their_mass(student: Any, cases: Any) -> None:
    """Spans stand in the order of the weight that they hold together."""
    for n, span_tokens, n_spans in ((1, 2, 3), (4, 5, 7), (3, 1, 6), (2, 16, 4)):
        weights = cases.rng.dirichlet(np.full(n_spans * span_tokens, 0.3), n)
        weights.reshape(n, n_spans, span_tokens)[::2, ::2, 1:] = 0  # some spans have one heavy token alone
        ranks = [plain_array(student.span_rank(weights, span_tokens, right)) for right in range(n_spans)]
        order = np.argsort(np.stack([_of_shape(rank, n) for rank in ranks], axis=-1), axis=-1, kind="stable")
        mass = weights.reshape(n, n_spans, span_tokens).sum(axis=-1)
        given = {"weights": weights, "span_tokens": span_tokens}
        expect_values(order, np.argsort(-mass, axis=-1), given=given, any_width=True)


@check(
    "span_rank-first",
    points=1,
    catches="counts from 0, or counts the span itself or its equals among those above it",
    hint="one more than the number of spans with more mass: > and not ≥",
)
def the_heaviest_is_first(student: Any, cases: Any) -> None:
    """The heaviest span has rank 1, and spans of equal mass share the better rank."""
    for span_tokens in (1, 2, 4):
        mass = cases.rng.permuted(np.tile([6, 3, 3 + A_LITTLE, 3, 1 - A_LITTLE, 0], (5, 1)), axis=1) / 16
        weights = np.repeat(mass / span_tokens, span_tokens, axis=1)  # sums of these are exact, in float32 as well
        for right in range(6):
            expected = 1 + (mass > mass[:, [right]]).sum(axis=1)
            given = {"mass of the spans": mass, "right": right}
            expect_values(student.span_rank(weights, span_tokens, right), expected, given=given, any_width=True)


@check(
    "span_rank-refuses",
    points=1,
    catches="cuts a context that the span does not divide, or takes the last span for span -1",
    hint="T % span_tokens must be 0, and right between 0 and the number of spans - 1",
)
def spans_that_do_not_exist_are_refused(student: Any, cases: Any) -> None:
    """A span that does not divide the context, or does not exist, is refused with a ValueError."""
    weights = cases.rng.dirichlet(np.ones(12), 2)
    for span_tokens, right in ((5, 0), (0, 0), (24, 0), (4, 3), (4, -1), (3, 4)):
        call = lambda span_tokens=span_tokens, right=right: student.span_rank(weights, span_tokens, right)  # noqa: E731
        expect_raises(ValueError, call, given=f"12 tokens, span_tokens = {span_tokens}, right = {right}")


def _of_shape(rank: np.ndarray, n: int) -> np.ndarray:
    if rank.shape != (n,) or rank.dtype.kind not in "iu":
        raise Mismatch(f"{n} whole numbers", f"{rank.dtype} of shape {rank.shape}")
    return rank
