"""Checks of `quantise_with_granularity`."""

from collections.abc import Iterator
from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_close, expect_raises
from labkit.formats import Granularity

from autograder.checks import Registry

from .inputs import DECODED_ULPS, FLOAT32_ULP, as_cached, clear_of_ties, draw_channels, groups_along, noisy

checks = Registry()
check = checks.check

BITS_TOLERANCE = 256 * FLOAT32_ULP
"""Room for an answer that counts its bits, at most 72 of them, in float32."""


def _shares_a_scale(granularity: Granularity, title: str, catches: str, hint: str) -> None:
    """Register the check that elements share a scale with those they should, and with no others."""

    def decodes_as_expected(student: Any, cases: Any) -> None:
        for x, bits in _tensors(cases, granularity):
            got = _decoded(student.quantise_with_granularity(x, bits, granularity), x)
            _expect_decoded(got, x, bits, granularity, True)

    decodes_as_expected.__doc__ = title
    check(f"quantise_with_granularity-{granularity.name.lower()}", points=1, catches=catches, hint=hint)(
        decodes_as_expected
    )


_shares_a_scale(
    Granularity.TENSOR,
    "TENSOR: all elements share one scale.",
    "takes one scale for each row",
    "one group as long as x.size, of x.reshape(1, -1)",
)
_shares_a_scale(
    Granularity.TOKEN,
    "TOKEN: the channels of one token share a scale.",
    "takes the wrong axis, or one scale for all",
    "one group along the last axis, as long as x is wide",
)
_shares_a_scale(
    Granularity.CHANNEL,
    "CHANNEL: the tokens of one channel share a scale.",
    "takes the wrong axis, or one scale for all",
    "one group along axis 0, as long as there are tokens",
)
_shares_a_scale(
    Granularity.GROUP,
    "GROUP: 16 neighbouring channels of one token share a scale.",
    "groups along the tokens, or in another length",
    "groups of formats.GROUP_LENGTH along the last axis",
)


@check(
    "quantise_with_granularity-affine",
    points=1,
    catches="ignores that codes are to be affine, or loses the minimum",
    hint="hand `symmetric` on to quantise_int; dequantise adds the minimum",
)
def affine_codes_start_at_a_minimum(student: Any, cases: Any) -> None:
    """With symmetric=False the codes start at the minimum of what shares a scale."""
    for granularity in Granularity:
        x = clear_of_ties(noisy(cases, 19, 32) + np.float32(1.5), 4, granularity, symmetric=False)
        got = _decoded(student.quantise_with_granularity(x, 4, granularity, False), x)
        _expect_decoded(got, x, 4, granularity, False)


@check(
    "quantise_with_granularity-bits",
    points=1,
    catches="leaves the scales out of the bits, or counts them for every element",
    hint="32 bits for every scale there is, divided by the number of elements",
)
def scales_are_shared_and_counted(student: Any, cases: Any) -> None:
    """An element stores its bits and its share of the 32 bits of its scale."""
    _expect_bits(student, cases, symmetric=True)


@check(
    "quantise_with_granularity-minimums",
    points=1,
    catches="forgets that an affine group stores its minimum too",
    hint="an affine group stores two float32 numbers",
)
def minimums_are_counted_too(student: Any, cases: Any) -> None:
    """An affine group stores a minimum beside its scale, in 32 bits more."""
    _expect_bits(student, cases, symmetric=False)


@check(
    "quantise_with_granularity-refuses",
    points=1,
    catches="pads or cuts a width that 16 does not divide, or lets NaN or infinity through",
    hint="quantise_int refuses all of these: do not catch what it raises, and hand it your x unpadded",
)
def what_cannot_be_quantised_is_refused(student: Any, cases: Any) -> None:
    """What `quantise_int` refuses is refused here: a width that 16 does not divide in groups, NaN, infinity, 5 bits."""
    ragged = noisy(cases, 16, 16 * int(cases.rng.integers(1, 4)) + int(cases.rng.integers(1, 16)))
    call = student.quantise_with_granularity
    expect_raises(ValueError, lambda: call(ragged, 4, Granularity.GROUP), given=f"shape {ragged.shape}, groups")
    x = noisy(cases, 6, 32)
    as_cached(call(x, 4, Granularity.TOKEN))  # this one is not
    expect_raises(ValueError, lambda: call(x, 5, Granularity.TOKEN), given="5 bits")
    for granularity, wrong in zip(Granularity, (np.nan, np.inf, -np.inf, np.nan), strict=True):
        x[int(cases.rng.integers(6)), int(cases.rng.integers(32))] = wrong
        expect_raises(ValueError, lambda g=granularity: call(x, 8, g), given=f"{wrong} in x, {granularity.name}")


def _tensors(cases: Any, granularity: Granularity) -> Iterator[tuple[np.ndarray, int]]:
    """Yield tensors clear of ties, with a loud channel and a loud token or with zeros, and a width in bits for each."""
    for n_tokens, width, bits in ((33, 32, 4), (16, 16, 3), (5, 128, 8), (65, 48, 2)):
        x = noisy(cases, n_tokens, width, draw_channels(cases, width, 1), 8.0)
        x[cases.rng.integers(n_tokens)] *= np.float32(5)
        yield clear_of_ties(x, bits, granularity), bits
    zeros = noisy(cases, 17, 32)
    zeros[3], zeros[:, 20], zeros[9, :16] = 0, 0, 0
    yield clear_of_ties(zeros, 6, granularity), 6


def _expect_decoded(got: np.ndarray, x: np.ndarray, bits: int, granularity: Granularity, symmetric: bool) -> None:
    expected = fp4kv.quantise_with_granularity(x, bits, granularity, symmetric).decoded
    tolerance = DECODED_ULPS * FLOAT32_ULP * np.abs(x).max()
    expect_close(got, expected, tolerance, given={"bits": bits, "granularity": granularity.name, "x": x})


def _expect_bits(student: Any, cases: Any, symmetric: bool) -> None:
    for n_tokens, width, bits in ((33, 32, 4), (3, 64, 2), (129, 16, 8)):
        x = noisy(cases, n_tokens, width)
        for granularity in Granularity:
            n_scales = groups_along(x, granularity)[..., 0].size
            expected = bits + 32 * n_scales * (1 if symmetric else 2) / x.size
            got = as_cached(student.quantise_with_granularity(x, bits, granularity, symmetric))
            given = {"bits": bits, "granularity": granularity.name, "symmetric": symmetric, "shape": str(x.shape)}
            expect_close(got.bits_per_element, expected, BITS_TOLERANCE, given=given)


def _decoded(got: Any, x: np.ndarray) -> np.ndarray:
    decoded = as_cached(got).decoded
    if decoded.shape != x.shape or decoded.dtype.kind != "f":
        raise Mismatch(f"decoded: floats of shape {x.shape}", f"{decoded.dtype} of shape {decoded.shape}")
    return decoded
