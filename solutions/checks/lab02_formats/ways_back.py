"""Checks of `dequantise`. Scales have few bits, so that products are exact in whatever order they are taken."""

import math
from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_values, plain_array
from labkit.formats import QuantisedE2M1, QuantisedInt

from autograder.checks import Registry

checks = Registry()
check = checks.check


@check(
    "dequantise-e2m1",
    points=1,
    catches="gives a scale to the wrong elements, or decodes otherwise than decode_e2m1",
    hint="np.repeat repeats each scale, np.tile repeats the row of scales; decode_e2m1 knows every code",
    uses=("decode_e2m1",),
)
def each_scale_serves_its_group(student: Any, cases: Any) -> None:
    """Each scale serves the 16 codes of its group."""
    quantised = QuantisedE2M1(_plain_codes(cases, (2, 3, 64)), _distinct_scales(cases, (2, 3, 4)), 1.0)
    expect_values(student.dequantise(quantised), fp4kv.dequantise(quantised), given=quantised.codes)
    _expect_every_code(student, cases)


@check(
    "dequantise-tensor_scale",
    points=1,
    catches="forgets the tensor scale, or divides by it",
    hint="a code stands for value · (s · t)",
)
def the_tensor_scale_counts(student: Any, cases: Any) -> None:
    """The tensor scale counts too."""
    for t in cases.rng.permutation([0.25, 3.0, 48.0]):  # few bits: every order of products is exact
        quantised = QuantisedE2M1(_plain_codes(cases, (3, 16)), np.float32([[1.25], [1.25], [1.25]]), float(t))
        given = {"tensor_scale": float(t), "scales": 1.25, "codes": quantised.codes}
        expect_values(student.dequantise(quantised), fp4kv.dequantise(quantised), given=given)


@check(
    "dequantise-int",
    points=1,
    catches="forgets the minimum, or gives a scale to the wrong elements",
    hint="minimum + code · scale, both repeated `group` times",
)
def an_integer_is_minimum_plus_steps(student: Any, cases: Any) -> None:
    """An integer stands for minimum + code · scale, each scale serving its group."""
    minimums = np.float32(cases.rng.integers(-64, 64, (2, 3)) / 4)
    codes = cases.rng.integers(0, 256, (2, 12)).astype(np.int16)
    quantised = QuantisedInt(codes, _distinct_scales(cases, (2, 3)), minimums, 4, 1)
    expect_values(student.dequantise(quantised), fp4kv.dequantise(quantised), given=codes)


@check(
    "dequantise-axis",
    points=1,
    catches="repeats scales along the last axis whatever the record says",
    hint="np.repeat takes an axis",
)
def integer_groups_run_along_their_axis(student: Any, cases: Any) -> None:
    """Integer groups run along the axis that the record names."""
    codes = cases.rng.integers(-7, 8, (4, 6, 4)).astype(np.int16)
    for axis, group in ((0, 2), (1, 3), (-2, 3)):
        shape = tuple(n // group if i == axis % 3 else n for i, n in enumerate(codes.shape))
        quantised = QuantisedInt(codes, _distinct_scales(cases, shape), np.zeros(shape, np.float32), group, axis)
        given = {"axis": axis, "group": group, "codes": codes}
        expect_values(student.dequantise(quantised), fp4kv.dequantise(quantised), given=given)


def _expect_every_code(student: Any, cases: Any) -> None:
    """Expect the values of all codes: the right ones, or those of the student's own decode_e2m1.

    A slip in decode_e2m1 has cost its points already, and whoever does without it needs none.
    """
    codes = cases.rng.permutation(np.arange(16, dtype=np.uint8)).reshape(1, 16)
    got = student.dequantise(QuantisedE2M1(codes, np.float32([[2.0]]), 1.0))
    try:
        expect_values(got, 2 * fp4kv.decode_e2m1(codes), given=codes)
    except Mismatch:
        if not np.array_equal(got, 2 * plain_array(student.decode_e2m1(codes))):
            raise


def _plain_codes(cases: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return positive codes without the subnormal: no trap of decode_e2m1 among them."""
    return cases.rng.choice(np.uint8([0, 2, 3, 4, 5, 6, 7]), shape)


def _distinct_scales(cases: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return small multiples of 1/8, neighbours unequal: products with codes are exact in float32."""
    return np.float32(cases.rng.permutation(np.arange(1, 1 + math.prod(shape)))).reshape(shape) / np.float32(8)
