"""Checks of `quantise_int`."""

from typing import Any

import numpy as np
from fp4kv import quantise_int
from labkit import formats
from labkit.expect import Mismatch, expect_close, expect_raises, expect_values, plain_array

from autograder.checks import Registry

from .inputs import FLOAT32_ULP, as_integers, expect_refused

checks = Registry()
check = checks.check

CODE_MARGIN = 1e-3
"""Least distance of a quotient of integers from a tie, in codes. x - m in float32 is off by half a step of 8, 5e-7,
which is 2e-5 codes at the finest scale used here, 5/255."""


@check(
    "quantise_int-symmetric",
    points=1,
    catches="is off by one level, or takes one scale for all groups",
    hint="b bits have 2^b codes; leave the lowest unused, so that the range is the same on both sides",
)
def symmetric_levels_are_the_same_on_both_sides(student: Any, cases: Any) -> None:
    """Symmetric codes reach ±(2^(b-1) - 1), with s = amax / (2^(b-1) - 1) in each group."""
    for bits in formats.INTEGER_BITS:
        x = _clear_of_integer_ties(cases.rng.normal(size=(2, 3, 64)), bits, True)
        got, expected = as_integers(student.quantise_int(x, bits, 32)), quantise_int(x, bits, 32)
        given = {"bits": bits, "group": 32, "x": x}
        expect_values(got.scales, expected.scales, given=given)
        expect_values(got.codes, expected.codes, given=given)
        expect_values(got.minimums, expected.minimums, given=given)


@check(
    "quantise_int-affine",
    points=1,
    catches="is off by one level, rounds the minimum, or ignores that codes start at the minimum",
    hint="subtract the group's minimum, divide by (max - min) / (2^b - 1); keep the minimum as it is",
)
def affine_codes_start_at_the_minimum(student: Any, cases: Any) -> None:
    """Affine codes run from 0 to 2^b - 1 above the group's minimum, which is kept as a float."""
    for bits in formats.INTEGER_BITS:
        x = _clear_of_integer_ties(cases.rng.uniform(1.3, 6.3, size=(3, 64)), bits, False)
        got = as_integers(student.quantise_int(x, bits, 16, -1, False))
        expected = quantise_int(x, bits, 16, symmetric=False)
        given = {"bits": bits, "group": 16, "x": x}
        expect_values(got.minimums, expected.minimums, given=given)
        expect_close(got.scales, expected.scales, 2 * FLOAT32_ULP * expected.scales, given=given)
        expect_values(got.codes, expected.codes, given=given)


@check(
    "quantise_int-ties",
    points=1,
    catches="rounds halves up or away from zero",
    hint="np.rint rounds half to even, floor(x + 0.5) does not",
)
def integer_ties_go_to_the_even_code(student: Any, cases: Any) -> None:
    """A quotient halfway between two codes goes to the even one."""
    for bits in (4, 6):  # amax is the number of levels times a power of two: quotients are exact
        levels = 2 ** (bits - 1) - 1
        halves = cases.rng.integers(-levels, levels, 15) + 0.5
        x = np.float32(np.append(levels, halves) * 2.0 ** cases.rng.integers(-3, 4))
        got = as_integers(student.quantise_int(x, bits, 16))
        expect_values(got.codes, quantise_int(x, bits, 16).codes, given={"bits": bits, "x": x})


@check(
    "quantise_int-axis",
    points=1,
    catches="groups along the last axis whatever is asked, or changes another axis",
    hint="x.reshape(*before, n // group, group, *after), then reduce over the new axis",
)
def groups_run_along_the_axis(student: Any, cases: Any) -> None:
    """Groups run along `axis`, and only its length is divided by the group."""
    for axis, group in ((0, 4), (1, 3), (-2, 2), (2, 5)):
        x = np.float32(cases.rng.normal(size=(8, 6, 10)))
        got, expected = (
            as_integers(student.quantise_int(x, 8, group, axis, False)),
            quantise_int(x, 8, group, axis, False),
        )
        given = {"axis": axis, "group": group, "x": x}
        expect_values(got.minimums, expected.minimums, given=given)  # minimums alone do not depend on levels
        for part in (got.codes, got.scales):
            plain_array(part)
        shapes = (np.shape(got.codes), np.shape(got.scales), got.group, got.axis % 3)
        wanted = (expected.codes.shape, expected.scales.shape, group, axis % 3)
        if shapes != wanted:
            raise Mismatch(_show_layout(wanted), _show_layout(shapes))


def _show_layout(layout: tuple[Any, ...]) -> str:
    return "codes {}, scales {}, group {}, axis {}".format(*layout)


@check(
    "quantise_int-constant",
    points=1,
    catches="divides zero by zero, or takes small groups for zeros",
    hint="a scale is never smaller than formats.FLOAT32_TINY",
)
def constant_groups_are_exact(student: Any, cases: Any) -> None:
    """A group of zeros gives zeros, and an affine constant group decodes to itself."""
    x = np.float32(np.repeat([0, 0.1, *cases.rng.normal(size=4)], 8)).reshape(2, 24)
    got = as_integers(student.quantise_int(x, 4, 8, -1, False))
    _expect_positive(got.scales, given=x)
    expect_values(got.minimums, x[:, ::8], given=x)
    expect_values(got.codes, np.zeros((2, 24), np.int16), given=x)
    tiny = x * np.float32(2.0**-80)
    scales = quantise_int(tiny, 8, 24).scales
    expect_close(as_integers(student.quantise_int(tiny, 8, 24)).scales, scales, scales / 8, given=tiny)  # any levels do
    zeros = as_integers(student.quantise_int(x[0, :8], 6, 8))
    _expect_positive(zeros.scales, given=x[0, :8])
    expect_values(zeros.codes, np.zeros(8, np.int16), given=x[0, :8])


@check(
    "quantise_int-argument",
    points=1,
    catches="changes the array that it was given",
    hint="x -= minimum writes into the caller's array, x - minimum makes a new one",
)
def the_argument_stays_as_it_was(student: Any, cases: Any) -> None:
    """The array that was handed over is the same after the call."""
    x = np.float32(cases.rng.normal(size=(4, 16)))
    for symmetric in (True, False):
        _, arguments = student.quantise_int.and_arguments(x.copy(), 4, 8, -1, symmetric)
        expect_values(arguments[0], x, given=x)


@check(
    "quantise_int-refuses",
    points=1,
    catches="cuts or pads what the group does not divide, or lets NaN or infinity through",
    hint="np.isfinite, x.shape[axis] % group, and the five widths",
)
def what_cannot_be_an_integer_is_refused(student: Any, cases: Any) -> None:
    """NaN, infinity and a width that the group does not divide are refused with a ValueError."""
    x = np.float32(cases.rng.normal(size=(4, 24)))
    expect_raises(ValueError, lambda: student.quantise_int(x, 4, 16), given="shape (4, 24), groups of 16")
    expect_raises(ValueError, lambda: student.quantise_int(x, 4, 3, 0), given="shape (4, 24), groups of 3, axis 0")
    expect_raises(ValueError, lambda: student.quantise_int(x, 5, 8), given="5 bits")
    expect_refused(cases, lambda x: student.quantise_int(x, 8, 16), shape=(2, 32))


def _clear_of_integer_ties(x: np.ndarray, bits: int, symmetric: bool) -> np.ndarray:
    """Return x as float32 with the elements whose quotients lie near a tie moved a quarter of a step away."""
    x = np.float32(x)
    group = 32 if symmetric else 16
    quantised = quantise_int(x, bits, group, symmetric=symmetric)
    scales, minimums = (
        np.repeat(part.astype(np.float64), group, -1) for part in (quantised.scales, quantised.minimums)
    )
    quotients = (x - minimums) / scales
    is_near = np.abs(quotients - np.floor(quotients) - 0.5) < CODE_MARGIN
    return np.where(is_near, np.float32(minimums + (np.floor(quotients) + 0.75) * scales), x)


def _expect_positive(scales: Any, given: Any) -> None:
    found = plain_array(scales)
    if not np.all(found > 0):
        raise Mismatch("scales above 0", f"{found[~(found > 0)][0]}", given=f"{given.shape} with constant groups")
