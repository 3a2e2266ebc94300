"""Checks of the two kinds of scale: E4M3 and UE8M0."""

from typing import Any

import numpy as np
from fp4kv import round_to_e4m3, ue8m0_exponent
from labkit import formats
from labkit.expect import expect_values

from autograder.checks import Registry

from .inputs import E4M3_NORMAL, expect_refused, signed

checks = Registry()
check = checks.check


@check(
    "round_to_e4m3-nearest",
    points=1,
    catches="uses steps of the wrong size, or rounds twice",
    hint="between 2^e and 2^(e+1) the step is 2^(e-3); take e from np.frexp",
)
def normal_values_take_eight_steps(student: Any, cases: Any) -> None:
    """Values between 2^-6 and 448, of any shape, go to the nearest of eight steps per power of two."""
    ties = _e4m3_ties(E4M3_NORMAL[E4M3_NORMAL <= 224])
    beside = [value for value in cases.near(cases.rng.choice(ties, 12)) if value not in ties]
    magnitudes = np.concatenate([beside, 2.0 ** cases.rng.uniform(-6, 7.8, 60 - len(beside))])
    x = signed(cases, magnitudes).astype(np.float32).reshape(5, 12).T
    expect_values(student.round_to_e4m3(x), round_to_e4m3(x), given=x)

    x = ties[::2] * (1 + 1e-12)  # ties to float32, which would round first
    expect_values(student.round_to_e4m3(x), round_to_e4m3(x), given=x)


@check(
    "round_to_e4m3-ties",
    points=1,
    catches="rounds ties away from zero",
    hint="np.rint rounds half to even, floor(x + 0.5) does not",
)
def scale_ties_go_to_the_even_mantissa(student: Any, cases: Any) -> None:
    """A value halfway between two E4M3 values goes to the even mantissa."""
    ties = cases.rng.choice(_e4m3_ties(E4M3_NORMAL[E4M3_NORMAL <= 224]), 30, replace=False)
    x = signed(cases, np.append(ties, 2.0**-10)).astype(np.float32)
    expect_values(student.round_to_e4m3(x), round_to_e4m3(x), given=x)


@check(
    "round_to_e4m3-subnormal",
    points=1,
    catches="flushes values below 2^-6 to zero, goes on with finer steps, or drops the sign of -0.0",
    hint="a step is never smaller than 2^-9; np.copysign gives a zero its sign",
)
def small_values_keep_the_smallest_step(student: Any, cases: Any) -> None:
    """Below 2^-6 the steps stay 2^-9, and -0.0 stays -0.0."""
    steps = cases.rng.integers(0, 8, 20) + cases.rng.uniform(-0.45, 0.45, 20)
    x = signed(cases, np.append(np.abs(steps), [0.4995, 0.5005]) * 2.0**-9).astype(np.float32)
    expect_values(student.round_to_e4m3(x), round_to_e4m3(x), given=x)

    zeros = np.float32([0.0, -0.0])
    expect_values(student.round_to_e4m3(zeros), zeros, given=zeros, signed_zeros=True)


@check(
    "round_to_e4m3-saturates",
    points=1,
    catches="gives NaN or 480 above 448, or stops at 240",
    hint="clip to ±448 before you round",
)
def large_values_become_448(student: Any, cases: Any) -> None:
    """Values from 240 to 448 are still exact steps; above 448 everything is 448."""
    x = np.array([250, 290, 350, 447, 449, 463.9, 464, 465, 480, 1e4, 1e30, *cases.rng.uniform(449, 1000, 5)])
    x = signed(cases, x).astype(np.float32)
    expect_values(student.round_to_e4m3(x), round_to_e4m3(x), given=x)


@check(
    "round_to_e4m3-refuses",
    points=1,
    catches="lets NaN or infinity through, clipped or not",
    hint="np.clip makes 448 of infinity: look before you clip",
)
def scales_must_be_finite(student: Any, cases: Any) -> None:
    """NaN and infinity are refused with a ValueError that names the index of the first."""
    expect_refused(cases, student.round_to_e4m3)


@check(
    "ue8m0_exponent-smallest",
    points=1,
    catches="rounds the exponent down or to nearest, or adds the bias of the stored byte",
    hint="448 · 2^e must reach amax, and 448 · 2^(e-1) must not",
)
def the_exponent_is_the_smallest_that_makes_room(student: Any, cases: Any) -> None:
    """The exponent is the smallest that makes room for amax, in an array of any shape."""
    whole = cases.rng.integers(-19, 110, (4, 6))
    amax = np.float32(448 * 2.0 ** (whole - cases.rng.uniform(0.05, 0.95, whole.shape)))
    expect_values(student.ue8m0_exponent(amax), ue8m0_exponent(amax), given=amax, any_width=True)


@check(
    "ue8m0_exponent-powers",
    points=1,
    catches="trusts a rounded logarithm, or takes < for ≤",
    hint="np.frexp takes a float apart without rounding",
)
def exact_powers_are_not_missed(student: Any, cases: Any) -> None:
    """448 · 2^k gets exactly k, and the next float above it k + 1."""
    amax = cases.near(448 * 2.0 ** np.append(0, cases.rng.choice(np.arange(-20, 110), 20, replace=False)))
    expect_values(student.ue8m0_exponent(amax), ue8m0_exponent(amax), given=amax, any_width=True)


@check(
    "ue8m0_exponent-floor",
    points=1,
    catches="takes the logarithm of zero, lets tiny groups choose tiny scales, or takes what is no magnitude",
    hint="raise amax to 1e-4, but first look for what is negative or not finite",
)
def small_groups_count_as_the_floor(student: Any, cases: Any) -> None:
    """What is smaller than 1e-4 counts as 1e-4, zero included; what is no magnitude is refused."""
    amax = np.float32([0.0, formats.FLOAT32_TINY, 1e-30, *10.0 ** cases.rng.uniform(-20, -4.5, 4), 1e-4])
    expect_values(student.ue8m0_exponent(amax), ue8m0_exponent(amax), given=amax, any_width=True)

    expect_refused(cases, student.ue8m0_exponent, wrong=(np.nan, np.inf, -1.0))


def _e4m3_ties(values: np.ndarray) -> np.ndarray:
    return np.asarray((values[1:] + values[:-1]) / 2)
