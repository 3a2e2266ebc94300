"""Checks of `rotate_hadamard` and `attend_rotated`.

A lone outlier c · e_i turns into D elements ±c/√D, and both are exact in E2M1 where c and c/√D are 6 times a scale.
A bent vector, [-1, -1, -1, 1] with itself as a Kronecker product, is its own rotation, and exact too. Caches made of
these lose nothing in E2M1, rotated or not, so that one property can be asked for at a time.
"""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_close, expect_raises, expect_values, plain_array
from labkit.given.lab02 import dequantise, quantise_e2m1
from labkit.given.lab03 import attend

from autograder.checks import Registry

from .inputs import FLOAT32_ULP, noisy

checks = Registry()
check = checks.check

OUTPUT_TOLERANCE = 1e-4
"""Relative to the largest value. A softmax over float32 logits up to 60 is off by 60 · 2^-23 · √D, 6e-5; that much
is less than a hundredth of what any of the mistakes here does to the output."""

LARGEST = 1e9
"""No rotation of what is asked here comes near it; squares of it still fit float32."""


def _rounding(x: np.ndarray) -> float:
    """Return how far a float32 answer may be off: D additions, each rounded to half a step of at most ‖x‖."""
    return float(x.shape[-1] * FLOAT32_ULP / 2 * np.linalg.norm(x.astype(np.float64), axis=-1).max())


@check(
    "rotate_hadamard-length",
    points=1,
    catches="forgets to divide by √D, or divides by D",
    hint="H times H is D times the identity: what makes the length stay?",
)
def lengths_stay(student: Any, cases: Any) -> None:
    """A rotation changes the length of no vector."""
    for width in (1, 2, 16, 128):
        x = np.float32(cases.rng.normal(size=(5, width)) * 10.0 ** cases.rng.integers(-3, 4))
        got = _rotated(student.rotate_hadamard(x), x)
        lengths = np.linalg.norm(x.astype(np.float64), axis=-1)
        expect_close(np.linalg.norm(got.astype(np.float64), axis=-1), lengths, _rounding(x), given=f"shape {x.shape}")


@check(
    "rotate_hadamard-order",
    points=2,
    catches="takes the rows of H in another order, or another orthonormal matrix",
    hint="element i of row c is -1 where c and i have an odd number of bits in common; print your H for D = 4",
)
def rows_are_in_sylvesters_order(student: Any, cases: Any) -> None:
    """Element c is the sum of x with the signs of row c of Sylvester's matrix."""
    for width in (2, 4, 8, 64, 128):
        x = np.float32(cases.rng.normal(size=(3, width)))
        expected = fp4kv.rotate_hadamard(x)
        got = plain_array(student.rotate_hadamard(x), x)
        size = np.linalg.norm(got.astype(np.float64)) / np.linalg.norm(expected) if got.size else 0.0
        factor = 1 / size if np.isfinite(size) and size > 0 else 1.0  # lengths are another check
        expect_close(got * factor, expected, 2 * _rounding(x), given=x)


@check(
    "rotate_hadamard-axis",
    points=1,
    catches="rotates along the first axis, or takes one kind of array only",
    hint="x @ H works for an x with any number of axes, H @ x does not",
)
def only_the_last_axis_is_rotated(student: Any, cases: Any) -> None:
    """Every row is rotated by itself, along the last axis, whatever the axes before it."""
    for shape in ((16, 16), (2, 3, 32), (5, 1, 2, 8)):
        x = np.float32(cases.rng.normal(size=shape))
        rows = [_rotated(student.rotate_hadamard(row), row) for row in x.reshape(-1, shape[-1])]
        if np.array_equal(rows[0], rows[1]):
            raise Mismatch("different rows for different rows", f"{rows[0]} for two", f"rows of shape {shape[-1:]}")
        expected = np.reshape(rows, shape)
        expect_close(student.rotate_hadamard(x), expected, 2 * _rounding(expected), given=x)


@check(
    "rotate_hadamard-argument",
    points=1,
    catches="overwrites the array that it was given",
    hint="np.asarray(x, np.float64) is x itself where x is float64 already; x + y makes a new array, x += y does not",
)
def the_argument_stays_as_it_was(student: Any, cases: Any) -> None:
    """The array that was handed over is the same after the call."""
    for kind in (np.float64, np.float32):
        x = cases.rng.normal(size=(3, 16)).astype(kind)
        got, arguments = student.rotate_hadamard.and_arguments(x.copy())
        _rotated(got, x)
        expect_values(arguments[0], x, given=x)


@check(
    "rotate_hadamard-refuses",
    points=1,
    catches="pads or cuts a width that is no power of two",
    hint="width & (width - 1) is 0 for powers of two alone (and for 0)",
)
def other_widths_are_refused(student: Any, cases: Any) -> None:
    """A last axis whose length is no power of two is refused with a ValueError."""
    x = np.float32(cases.rng.normal(size=(2, 8)))
    _rotated(student.rotate_hadamard(x), x)  # this one is not
    for width in (3, 12, 48, int(cases.rng.integers(65, 128))):
        x = np.ones((2, width), np.float32)
        expect_raises(ValueError, lambda x=x: student.rotate_hadamard(x), given=f"shape {x.shape}")


@check(
    "attend_rotated-query",
    points=1,
    catches="rotates keys but not the query, or the query but not the keys",
    hint="q · k stays what it is if both are rotated",
    uses=("rotate_hadamard",),
)
def the_query_is_rotated_as_the_keys_are(student: Any, cases: Any) -> None:
    """Logits stay what they are: the query is rotated as the keys are."""
    for width, n_tokens in ((16, 9), (64, 33)):
        keys = _lone_outliers(cases, n_tokens, width)
        q = np.float32(cases.rng.normal(size=(3, width)))
        _expect_output(student, q, keys, _bent(cases, n_tokens, 16))


@check(
    "attend_rotated-values",
    points=1,
    catches="forgets to rotate the output back, or to rotate the values",
    hint="what is stored is Hv, so the output comes out rotated too; H is its own inverse",
    uses=("rotate_hadamard",),
)
def the_output_is_rotated_back(student: Any, cases: Any) -> None:
    """The output is that of the values as they were: rotated back."""
    for width, n_tokens in ((16, 9), (64, 33)):
        values = _lone_outliers(cases, n_tokens, width)
        q = np.float32(cases.rng.normal(size=(3, 64)))
        _expect_output(student, q, _bent(cases, n_tokens, 64), values)


@check(
    "attend_rotated-order",
    points=2,
    catches="quantises first and rotates then, or does not quantise",
    hint="what the cache holds is quantised last: quantise_e2m1(rotate_hadamard(x))",
    uses=("rotate_hadamard",),
)
def rotation_comes_before_quantisation(student: Any, cases: Any) -> None:
    """Keys and values are rotated first and quantised then, so that E2M1 sees no outlier."""
    loud = noisy(cases, 33, 64, [int(cases.rng.integers(64))], 50.0)
    q = np.float32(cases.rng.normal(size=(3, 64))) * np.float32(0.1)
    own_rotation = np.float32(q + fp4kv.rotate_hadamard(q))
    _expect_output(student, own_rotation, loud, _bent(cases, 33, 16))
    _expect_output(student, q[:1], _bent(cases, 1, 64), loud[:1], either_way=True)


def _rotated(got: Any, x: np.ndarray) -> np.ndarray:
    """Return what may be a rotation of x: of its shape, finite, and not x itself, unless its width is 1."""
    found = plain_array(got)
    if found.shape != x.shape or found.dtype.kind != "f" or not np.isfinite(found).all():
        raise Mismatch(f"finite floats of shape {x.shape}", f"{found.dtype} of shape {found.shape}")
    if x.shape[-1] > 1 and np.allclose(found, x, atol=0):
        raise Mismatch("x rotated", "x itself", f"x of shape {x.shape}")
    return found


def _lone_outliers(cases: Any, n_tokens: int, width: int) -> np.ndarray:
    """Return tokens with one element each that is not zero: ±6 · 2^n, exact in E2M1 as they are and rotated."""
    x = np.zeros((n_tokens, width), np.float32)
    sizes = 6 * 2.0 ** cases.rng.integers(1, 3, n_tokens) * cases.rng.choice([-1, 1], n_tokens)
    x[np.arange(n_tokens), cases.rng.integers(width, size=n_tokens)] = sizes
    return x


def _bent(cases: Any, n_tokens: int, width: int) -> np.ndarray:
    """Return multiples of one vector that is its own rotation: ±6 · 2^n everywhere. `width` is a power of four."""
    bent = np.ones(1)
    while bent.size < width:
        bent = np.kron(bent, [-1, -1, -1, 1])
    sizes = 6 * 2.0 ** cases.rng.integers(-5, -2, n_tokens) * cases.rng.choice([-1, 1], n_tokens)
    return np.float32(sizes[:, None] * bent)


def _expect_output(student: Any, q: np.ndarray, keys: np.ndarray, values: np.ndarray, either_way: bool = False) -> None:
    """Expect the output of the reference, or of the student's own rotation, whose slips have cost their points.

    `either_way` takes an output that was not rotated back: that is another check.
    """
    got = student.attend_rotated(q, keys, values)
    wanted = fp4kv.attend_rotated(q, keys, values)
    tolerance = OUTPUT_TOLERANCE * float(np.abs(values).max())
    given = f"q of shape {q.shape}, keys of shape {keys.shape}, values of shape {values.shape}"
    for expected in (wanted, *((fp4kv.rotate_hadamard(wanted),) if either_way else ())):
        if _is_close(got, expected, tolerance):
            return
    own = _with_own_rotation(student, q, keys, values)
    if own is None or not _is_close(got, own, tolerance * max(1.0, float(np.abs(own).max()))):
        expect_close(got, wanted, tolerance, given=given)


def _is_close(got: Any, expected: np.ndarray, tolerance: float) -> bool:
    try:
        expect_close(got, expected, tolerance, given="")
    except Mismatch:
        return False
    return True


def _with_own_rotation(student: Any, q: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray | None:
    """Return the output with the student's rotation, or none where that does not rotate."""

    def rotate(x: np.ndarray) -> np.ndarray:
        found = plain_array(student.rotate_hadamard(x))
        if found.shape != x.shape or found.dtype.kind != "f" or not np.all(np.abs(found) < LARGEST):
            raise Mismatch(f"a rotation of shape {x.shape}", f"{found.dtype} of shape {found.shape}")
        return found

    probe = np.arange(1, 1 + q.shape[-1], dtype=np.float32)
    if np.allclose(rotate(probe), probe):
        return None
    q_rotated = rotate(q)
    cached = [dequantise(quantise_e2m1(np.float32(rotate(x)))) for x in (keys, values)]
    return rotate(attend(q_rotated, *cached))
