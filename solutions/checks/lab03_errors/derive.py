"""Checks of the section *derive*: what can be found on paper."""

import math
from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_close, expect_dtype_and_shape, expect_raises, plain_array, show_number
from labkit.formats import E4M3_MAX, E4M3_MIN_SUBNORMAL

from autograder.checks import Registry

checks = Registry()
check = checks.check

CELL_RADII = np.array([0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1.0])
"""Codes 0 to 6: the larger half of each cell; the ties are 0.25, 0.75, 1.25, 1.75, 2.5, 3.5 and 5."""

FLOAT32_ROOM = 1e-6
"""Relative room for an answer in float32: eight roundings of 2^-24 are 5e-7."""


@check(
    "code_radii-cells",
    points=1,
    catches="takes half of a cell's width, or the nearer edge, where the value is not in the middle",
    hint="write down both ties beside each value; the farther of the two counts",
)
def radii_reach_the_farther_tie(student: Any, cases: Any) -> None:
    """Codes 0 to 6 reach to the farther of their two ties."""
    drawn = cases.rng.integers(8, 16, 4) * 2.0 ** cases.rng.integers(-8, 4, 4)
    for s in map(float, [1.0, E4M3_MIN_SUBNORMAL, 3 * E4M3_MIN_SUBNORMAL, *drawn]):
        got = _eight(student.code_radii(s), s)
        expect_close(got[:7], CELL_RADII, FLOAT32_ROOM, given=f"s = {s}")


@check(
    "code_radii-clipped",
    points=1,
    catches="forgets that code 7 clips, most of all under the smallest scales",
    hint="how large can amax be when the scale comes out as s? Lab 2 asked for it: 6 · (s + half a step)",
)
def code_7_reaches_as_far_as_it_clips(student: Any, cases: Any) -> None:
    """Code 7 reaches to its tie, 5, or as far up as a group can clip: farther where s is small."""
    small = np.arange(1, 8) * E4M3_MIN_SUBNORMAL
    for s in map(float, [*cases.rng.permutation(small), 2.0**-6, 1.0, 1.875, 416.0]):  # up to the last but one
        got = _eight(student.code_radii(s), s)
        expected = max(1.0, 3 * E4M3_MIN_SUBNORMAL / s)
        expect_close(got[7], expected, FLOAT32_ROOM * expected, given=f"s = {s}")


@check(
    "code_radii-top",
    points=1,
    catches="gives code 7 a radius under the scale that saturates",
    hint="which scale does a group get whose largest element is a million?",
    per_student=False,
)
def nothing_bounds_code_7_under_448(student: Any, cases: Any) -> None:
    """Under the largest scale nothing bounds code 7, and the other codes stay bounded."""
    got = _eight(student.code_radii(E4M3_MAX), E4M3_MAX)
    if not np.isposinf(got[7]):
        raise Mismatch("infinity for code 7", show_number(got[7]), "s = 448")
    if not np.all(np.isfinite(got[:7])):
        raise Mismatch("finite radii for codes 0 to 6", show_number(got[:7]), "s = 448")


def _eight(got: Any, s: float) -> np.ndarray:
    return expect_dtype_and_shape(got, np.zeros(8), f"s = {s}", any_width=True).astype(np.float64)


@check(
    "two_point_weight-attains",
    points=2,
    catches="starts from equal weights, or takes the two logits to be ε apart, not 2ε",
    hint="the two logits change their distance by 2ε: let it go from -ε to +ε",
)
def a_weight_moves_by_exactly_the_bound(student: Any, cases: Any) -> None:
    """From this weight, moving one logit up by ε and the other down by ε changes it by tanh(ε/2)."""
    for epsilon in (0.1, 1.0, *map(float, cases.rng.uniform(0.3, 3, 4))):
        weight = _number(student.two_point_weight(epsilon), f"ε = {epsilon}")
        if not 0 < weight < 1:
            raise Mismatch("a weight between 0 and 1", show_number(weight), f"ε = {epsilon}")
        moved = [1 / (1 + (1 - weight) / weight * math.exp(turn * 2 * epsilon)) for turn in (-1, 1)]
        change = max(abs(after - weight) for after in moved)
        expect_close(change, math.tanh(epsilon / 2), FLOAT32_ROOM, given=f"the change from {weight}, ε = {epsilon}")


@check(
    "cell_mean_square-even",
    points=1,
    catches="forgets the third of an integral of squares, or takes a root",
    hint="average (x - value)² over the cell: an integral from low to high, divided by the width",
)
def in_the_middle_it_is_a_twelfth(student: Any, cases: Any) -> None:
    """With the value in the middle of its cell it is width²/12."""
    for value, half in zip(cases.rng.uniform(-3, 3, 6), cases.rng.uniform(0.1, 2, 6), strict=True):
        _expect_mean_square(student, float(value - half), float(value), float(value + half))


@check(
    "cell_mean_square-uneven",
    points=1,
    catches="takes width²/12 wherever the value lies, or gives both sides the same share",
    hint="each side has a third of its own length squared, in proportion to that length",
)
def the_longer_side_counts_more(student: Any, cases: Any) -> None:
    """With the value elsewhere the longer side counts more, and more often."""
    for low, value, high in ((1.75, 2.0, 2.5), (3.5, 4.0, 5.0), (0.0, 0.0, 3.0), (-2.0, 1.0, 1.0)):
        _expect_mean_square(student, low, value, high)
    for low, below, above in cases.rng.uniform(0.2, 2, (6, 3)) * [-3, 1, 3]:
        _expect_mean_square(student, float(low), float(low + below), float(low + below + above))


def _number(got: Any, given: Any) -> float:
    """Return a number of either kind, 0 or 0.0."""
    found = plain_array(got, given)
    if found.size != 1 or found.dtype.kind not in "biuf":
        raise Mismatch("one number", f"{found.dtype} of shape {found.shape}", f"{given}")
    return float(found.item())


def _expect_mean_square(student: Any, low: float, value: float, high: float) -> None:
    expected = ((high - value) ** 3 - (low - value) ** 3) / (3 * (high - low))
    given = {"low": low, "value": value, "high": high}
    got = _number(student.cell_mean_square(low, value, high), given)
    expect_close(got, expected, FLOAT32_ROOM * expected, given=given)


@check(
    "needle_tolerance-others",
    points=1,
    catches="counts the needle among its rivals, or lets only one side move",
    hint="there are N - 1 others; the needle may fall by ε while they rise by ε",
)
def half_the_mass_against_all_others(student: Any, cases: Any) -> None:
    """For half the mass, a margin of ln(N-1) leaves nothing, and 2ε more leaves ε."""
    for context in (2, 3, *map(int, cases.rng.integers(4, 12, 3)), 131_072):
        margin = math.log(context - 1) + float(cases.rng.uniform(0.5, 6))
        _expect_tolerance(student, context, margin, 0.5)


@check(
    "needle_tolerance-mass",
    points=1,
    catches="leaves out the odds mass/(1-mass), or turns them over",
    hint="a needle with mass a has odds of a to 1 - a against all others together",
)
def other_masses_by_their_odds(student: Any, cases: Any) -> None:
    """More mass leaves less tolerance, by half the logarithm of its odds."""
    for mass in map(float, [0.9, 0.1, *cases.rng.uniform(0.2, 0.45, 2), *cases.rng.uniform(0.55, 0.95, 2)]):
        _expect_tolerance(student, int(cases.rng.integers(50_000, 200_000)), float(cases.rng.uniform(16, 20)), mass)


@check(
    "needle_tolerance-nothing",
    points=1,
    catches="returns a tolerance below zero",
    hint="how far may a logit move that may not move at all?",
)
def too_small_a_margin_tolerates_nothing(student: Any, cases: Any) -> None:
    """Where the margin is too small, nothing is guaranteed: 0."""
    for margin in map(float, [-40.0, 0.0, *cases.rng.uniform(1, 6, 3)]):
        context = int(cases.rng.integers(2_000, 90_000))
        got = _number(student.needle_tolerance(context, margin, 0.5), _tell(context, margin, 0.5))
        expect_close(got, 0.0, 0, given=_tell(context, margin, 0.5))


@check(
    "needle_tolerance-alone",
    points=1,
    catches="takes the logarithm of zero where there is no other token",
    hint="a lone needle has weight 1, however far its logit moves",
)
def a_lone_needle_cannot_lose(student: Any, cases: Any) -> None:
    """A needle without others keeps its mass whatever happens: infinity."""
    for margin, mass in cases.rng.uniform([-2, 0.1], [9, 0.9], (3, 2)).tolist():
        got = _number(student.needle_tolerance(1, margin, mass), _tell(1, margin, mass))
        expect_close(np.isposinf(got), True, 0, given=_tell(1, margin, mass))


@check(
    "needle_tolerance-refuses",
    points=1,
    catches="answers for a share that is none, or for a context without tokens",
    hint="raise ValueError unless 0 < mass < 1 and context is at least 1",
)
def shares_outside_0_to_1_are_refused(student: Any, cases: Any) -> None:
    """A mass that is not between 0 and 1, or a context below 1, is refused with a ValueError."""
    for context, mass in ((100, 0.0), (100, 1.0), (100, -0.5), (100, 1.5), (0, 0.5), (-3, 0.5), (1, 1.0), (1, 1.5)):
        call = lambda context=context, mass=mass: student.needle_tolerance(context, 8.0, mass)  # noqa: E731
        expect_raises(ValueError, call, given=_tell(context, 8.0, mass))


def _expect_tolerance(student: Any, context: int, margin: float, mass: float) -> None:
    expected = fp4kv.needle_tolerance(context, margin, mass)
    got = _number(student.needle_tolerance(context, margin, mass), _tell(context, margin, mass))
    expect_close(got, expected, FLOAT32_ROOM * max(1.0, margin), given=_tell(context, margin, mass))


def _tell(context: int, margin: float, mass: float) -> str:
    return f"context = {context}, margin = {margin}, mass = {mass}"
