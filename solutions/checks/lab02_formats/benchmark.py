"""Checks of the section *benchmark*: values only, never times."""

import math
from typing import Any

import numpy as np
from labkit.expect import Mismatch, expect_close, expect_values, plain_array

from autograder.checks import Registry

from .inputs import as_integers

checks = Registry()
check = checks.check

DECIBEL_TOLERANCE = 0.01
"""Sums of up to 2^12 squares in float32, one after the other, are off by less than 2^12 · 2^-24; 10 log10 of
1 + 2^-12 is 0.001 dB, and the ratio holds two such sums."""


@check(
    "snr_db-decibels",
    points=1,
    catches="turns the ratio over, doubles or rounds the decibels, averages over rows or takes out the mean",
    hint="sum the squares of x and of the error over all elements, then divide, then take 10 log10",
)
def decibels_of_the_ratio_of_energies(student: Any, cases: Any) -> None:
    """The ratio of energies over all elements, ten times its logarithm."""
    for _ in range(6):  # one ratio could be a round number
        x = np.float32(cases.rng.normal(3, 1, (4, 8, 16)))
        error = cases.rng.normal(0.02, 0.01, x.shape) * np.arange(1, 5)[:, None, None]
        approximation = np.float32(x + error)
        ratio = student.snr_db(x, approximation)
        expect_close(ratio, _snr(x, approximation), DECIBEL_TOLERANCE, given=f"shape {x.shape}")


@check(
    "snr_db-exact",
    points=1,
    catches="fails where there is no error",
    hint="ask whether the error is zero before you divide by it",
)
def no_error_is_infinitely_good(student: Any, cases: Any) -> None:
    """An approximation without error has an infinite ratio."""
    x = np.float32(cases.rng.normal(size=(3, 5)))
    expect_values(student.snr_db(x, x.copy()), math.inf, given=x, any_width=True)


@check(
    "snr_by_bits-widths",
    points=2,
    catches="uses other groups, another order, or quantises what was quantised before",
    hint="each width starts from x; groups of 32; the ratios in the order of `bits`",
    uses=("quantise_int", "dequantise", "snr_db"),
)
def one_ratio_for_each_width(student: Any, cases: Any) -> None:
    """One ratio for each width, in the order asked for, each of the original data."""
    _expect_ratios(student, cases, symmetric=True)


@check(
    "snr_by_bits-affine",
    points=1,
    catches="ignores which kind of integer is asked for",
    hint="hand `symmetric` on to quantise_int",
    uses=("quantise_int", "dequantise", "snr_db"),
)
def the_kind_of_integer_is_the_one_asked_for(student: Any, cases: Any) -> None:
    """The kind of integer is the one asked for."""
    _expect_ratios(student, cases, symmetric=False)


def _expect_ratios(student: Any, cases: Any, symmetric: bool) -> None:
    """Compare with the student's own parts: a slip in one of them has cost its points already."""
    bits = tuple(map(int, cases.rng.permutation([8, 4, 2])))
    other, x = np.float32(cases.rng.normal(0.5, 1, (2, 4, 96)))
    _own_ratios(student, other, bits, symmetric)  # a part that is missing says so here
    got = student.snr_by_bits(x, bits, symmetric)  # before its parts: they could note what they found
    expected = _own_ratios(student, x, bits, symmetric)
    if len(set(expected)) < len(bits) or not np.all(np.isfinite(expected)):
        raise Mismatch("quantise_int, dequantise and snr_db that tell 8, 4 and 2 bits apart", f"{expected} dB")
    expect_close(got, np.array(expected), DECIBEL_TOLERANCE, given={"bits": bits, "symmetric": symmetric})


def _own_ratios(student: Any, x: np.ndarray, bits: tuple[int, ...], symmetric: bool) -> list[float]:
    """Return the ratios that the student's parts give, one for each width."""
    ratios = []
    for width in bits:
        quantised = as_integers(student.quantise_int(x, width, 32, -1, symmetric))
        ratio = plain_array(student.snr_db(x, student.dequantise(quantised)))
        ratios.append(float(ratio) if ratio.size == 1 else math.nan)
    return ratios


def _snr(x: np.ndarray, approximation: np.ndarray) -> float:
    x, approximation = x.astype(np.float64), approximation.astype(np.float64)
    return float(10 * np.log10(np.sum(x**2) / np.sum((x - approximation) ** 2)))
