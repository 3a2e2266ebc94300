"""What the checks of lab 2 share: inputs, and records as they come back."""

from typing import Any

import numpy as np
from labkit.expect import Mismatch, expect_close, expect_raises
from labkit.formats import QuantisedInt

FLOAT32_ULP = 2.0**-23
"""One step of float32, relative to a power of two: results that are rounded up to twice differ by at most this."""

E4M3_NORMAL = np.array([(8 + m) / 8 * 2.0**e for e in range(-6, 9) for m in range(8)][:-1])


def expect_near(got: Any, expected: float, given: Any) -> None:
    """Compare with room for an answer that is computed in float32."""
    expect_close(float(got), expected, 4 * FLOAT32_ULP * abs(expected), given=given)


def as_integers(got: Any) -> QuantisedInt:
    """Return a record of integers, if the answer has the parts of one."""
    if not isinstance(got, tuple) or len(got) != 5:
        raise Mismatch("a QuantisedInt: codes, scales, minimums, group, axis", f"a {type(got).__name__}")
    codes, scales, minimums, group, axis = got
    if any(isinstance(part, bool) or not isinstance(part, int | np.integer) for part in (group, axis)):
        raise Mismatch("whole numbers as group and axis", f"{type(group).__name__} and {type(axis).__name__}")
    return QuantisedInt(codes, scales, minimums, int(group), int(axis))


def signed(cases: Any, magnitudes: Any) -> np.ndarray:
    """Return the magnitudes with drawn signs."""
    return np.asarray(magnitudes) * cases.rng.choice([-1, 1], np.shape(magnitudes))


def expect_refused(
    cases: Any, call: Any, shape: tuple[int, int] = (3, 5), wrong: tuple[float, ...] = (np.nan, np.inf, -np.inf)
) -> None:
    """Expect a ValueError that names the first element which is wrong: by default, not finite."""
    for value in wrong:
        x = np.float32(cases.rng.uniform(1, 2, shape))
        where = (int(cases.rng.integers(shape[0])), int(cases.rng.integers(2, shape[1])))  # no number of a group
        x[-1, -1] = np.nan  # not the first, unless it is drawn too
        x[where] = value
        expect_raises(ValueError, lambda x=x: call(x), given=f"{value} at {where} in shape {shape}", naming=where)
