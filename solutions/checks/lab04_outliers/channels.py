"""Checks of `channel_error`."""

import math
from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_close, expect_raises, expect_values, plain_array

from autograder.checks import Registry

from .inputs import FLOAT32_ULP

checks = Registry()
check = checks.check


@check(
    "channel_error-channels",
    points=2,
    catches="squares, averages magnitudes, or sums over the channels of a token",
    hint="np.linalg.norm(..., axis=0) of the error, divided by that of x",
)
def one_relative_error_for_each_channel(student: Any, cases: Any) -> None:
    """Each channel has one error: the length of its error over its tokens, relative to the length of the channel."""
    for n_tokens, width in ((33, 16), (5, 64), (17, 17)):
        x = np.float32(cases.rng.normal(size=(n_tokens, width)) * 10.0 ** cases.rng.uniform(-3, 3, width))
        decoded = np.float32(x * (1 + cases.rng.normal(0, 0.1, x.shape) * cases.rng.uniform(0.1, 1, width)))
        expected = fp4kv.channel_error(x, decoded)
        tolerance = n_tokens * FLOAT32_ULP * (1 + expected)  # sums of n_tokens squares in float32, and their ratio
        expect_close(student.channel_error(x, decoded), expected, tolerance, given=f"shape {x.shape}")


@check(
    "channel_error-zeros",
    points=1,
    catches="divides zero by zero",
    hint="np.divide takes out= and where=; what should a channel of zeros count that comes back as zeros?",
)
def a_channel_of_zeros_is_exact_or_infinitely_wrong(student: Any, cases: Any) -> None:
    """A channel of zeros has error 0 if it comes back as zeros, infinity if not."""
    x = np.float32(cases.rng.normal(size=(9, 12)))
    zero, wrong = map(int, cases.rng.permutation(12)[:2])
    x[:, [zero, wrong]] = 0
    decoded = x.copy()
    decoded[4, wrong] = 0.25
    got = plain_array(student.channel_error(x, decoded))
    if got.shape != (12,):
        raise Mismatch("shape (12,)", f"shape {got.shape}")
    expect_values(got[[zero, wrong]], np.array([0.0, math.inf]), given="two channels of zeros", any_width=True)


@check(
    "channel_error-refuses",
    points=1,
    catches="lets NumPy stretch a shape that does not fit",
    hint="decoded.shape != x.shape: NumPy subtracts a row from every row without a word",
)
def other_shapes_are_refused(student: Any, cases: Any) -> None:
    """A `decoded` whose shape is not that of x is refused with a ValueError."""
    x = np.float32(cases.rng.normal(size=(6, 8)))
    plain_array(student.channel_error(x, x))  # this one is not
    for decoded in (x[:1], x[0], x[:, :1], x[:3]):
        given = f"shapes {x.shape} and {decoded.shape}"
        expect_raises(ValueError, lambda d=decoded: student.channel_error(x, d), given=given)
