"""Checks of `centre_keys`."""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_close, expect_dtype_and_shape, expect_raises, expect_values, plain_array

from autograder.checks import Registry

from .inputs import FLOAT32_ULP

checks = Registry()
check = checks.check

SHAPES = ((33, 16, 8), (5, 64, 1), (64, 24, 40), (7, 3, 6))
"""Tokens, channels, and tokens of calibration: one, most, and all but one of them among others."""


@check(
    "centre_keys-centre",
    points=2,
    catches="takes the mean of all tokens, which is not known yet, a median, a running mean, or the mean of channels",
    hint="keys[:n_calibration].mean(axis=0)",
)
def the_centre_is_the_mean_of_the_first_tokens(student: Any, cases: Any) -> None:
    """The centre is the mean of the first `n_calibration` tokens, one number per channel; no later token counts."""
    for n_tokens, width, n in SHAPES:
        keys = _keys(cases, n_tokens, width)
        keys[n:] *= np.float32(1000)  # what comes later must not show
        _, centre = _pair(student.centre_keys(keys, n), keys)
        expected = fp4kv.centre_keys(keys, n)[1]
        tolerance = (n + 1) * FLOAT32_ULP * np.abs(keys[:n]).max(axis=0)  # n sums in float32, one after the other
        given = {"n_calibration": n, "keys": keys}
        expect_dtype_and_shape(centre, expected, given)  # float32, as it is stored
        expect_close(centre, expected, tolerance, given=given)


@check(
    "centre_keys-later",
    points=1,
    catches="subtracts another centre than the one it returns, adds it, or leaves tokens out",
    hint="every token from n_calibration on loses the same centre",
)
def later_tokens_lose_the_centre(student: Any, cases: Any) -> None:
    """Every token from `n_calibration` on is stored less the centre that is returned."""
    for n_tokens, width, n in SHAPES:
        keys = _keys(cases, n_tokens, width)
        centred, centre = _pair(student.centre_keys(keys, n), keys)
        tolerance = 2 * FLOAT32_ULP * (np.abs(keys[n:]) + np.abs(centre))
        expected = keys[n:].astype(np.float64) - centre
        expect_close(centred[n:], expected, tolerance, given={"n_calibration": n, "keys from there on": keys[n:]})


@check(
    "centre_keys-first",
    points=1,
    catches="centres the tokens of which the mean is made: their centre is not known when they are stored",
    hint="a cache writes a token when it comes; what was not known then cannot be subtracted",
)
def the_first_tokens_stay_as_they_are(student: Any, cases: Any) -> None:
    """The first `n_calibration` tokens stay as they are, bit for bit."""
    for n_tokens, width, n in SHAPES:
        keys = _keys(cases, n_tokens, width)
        centred, _ = _pair(student.centre_keys(keys, n), keys)
        expect_values(centred[:n], keys[:n], given={"n_calibration": n, "keys": keys}, any_width=True)


@check(
    "centre_keys-argument",
    points=1,
    catches="changes the keys that it was given",
    hint="keys[n:] -= centre writes into the caller's array; work on keys.copy()",
)
def the_argument_stays_as_it_was(student: Any, cases: Any) -> None:
    """The array that was handed over is the same after the call."""
    keys = _keys(cases, 9, 16)
    got, arguments = student.centre_keys.and_arguments(keys.copy(), 3)
    _pair(got, keys)
    expect_values(arguments[0], keys, given=keys)


@check(
    "centre_keys-refuses",
    points=1,
    catches="takes the mean of no token, or of more tokens than there are",
    hint="1 <= n_calibration <= len(keys)",
)
def other_numbers_of_tokens_are_refused(student: Any, cases: Any) -> None:
    """A number of tokens below 1 or above T is refused with a ValueError."""
    keys = _keys(cases, 6, 16)
    for n in (0, -1, 7, int(cases.rng.integers(8, 1000))):
        expect_raises(ValueError, lambda n=n: student.centre_keys(keys, n), given=f"n_calibration = {n}, 6 tokens")
    _pair(student.centre_keys(keys, 6), keys)  # all of them are no more than there are


def _keys(cases: Any, n_tokens: int, width: int) -> np.ndarray:
    """Return keys whose channels have different means and are skewed, so that mean and median differ."""
    means = cases.rng.uniform(2, 6, width) * cases.rng.choice([-1, 1], width)
    return np.float32(means + cases.rng.exponential(1.0, (n_tokens, width)))


def _pair(got: Any, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(got, tuple | list) or len(got) != 2:
        raise Mismatch("two arrays: the centred keys and the centre", f"a {type(got).__name__}")
    centred, centre = plain_array(got[0]), plain_array(got[1])
    for name, part, shape in (("centred", centred, keys.shape), ("centre", centre, keys.shape[1:])):
        if part.shape != shape or part.dtype.kind != "f" or not np.isfinite(part).all():
            raise Mismatch(f"{name}: finite floats of shape {shape}", f"{part.dtype} of shape {part.shape}")
    return centred, centre
