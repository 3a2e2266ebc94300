"""Checks of `outlier_channels` and `split_outliers`."""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_close, expect_raises, expect_values, plain_array
from labkit.formats import Cached, Granularity

from autograder.checks import Registry

from .inputs import DECODED_ULPS, FLOAT32_ULP, as_cached, clear_of_ties, draw_channels, noisy

checks = Registry()
check = checks.check

THRESHOLD = 4.0
LOUD = 100.0
"""Far beyond the threshold under any rule: the mean of the reaches is below 16 where one channel in eight is loud,
and all else reaches 1, less than the threshold itself."""

FP16_ULP = 2.0**-10
"""One step of FP16, relative to a power of two; an integer of 4 bits is off by more at some of 19 tokens."""

LARGEST_FP16 = float(np.finfo(np.float16).max)

BITS_TOLERANCE = 64 * FLOAT32_ULP
"""Room for an answer that counts at most 32 bits per element in float32."""


@check(
    "outlier_channels-reach",
    points=1,
    catches="looks at the average of a channel, at its sign, or at tokens",
    hint="np.abs(x).max(axis=0) is how far each channel reaches",
)
def one_large_element_makes_a_channel_loud(student: Any, cases: Any) -> None:
    """A channel reaches as far as its largest magnitude over all tokens, whatever its sign."""
    for n_tokens, width in ((33, 32), (65, 64), (257, 48)):
        first, second, steady = cases.rng.choice(width, 3, replace=False)
        x = noisy(cases, n_tokens, width)
        x[cases.rng.integers(n_tokens, size=2), [first, second]] = [-4.5, 4.75]
        x[:, steady] = -5  # no range at all
        _expect_channels(student.outlier_channels(x, 3.0), np.sort([first, second, steady]), given=x)


@check(
    "outlier_channels-median",
    points=1,
    catches="compares with the mean of the channels, which the outliers raise, or takes one of the middle two",
    hint="np.median: half of the channels reach less far, however loud the loudest is",
)
def the_measure_is_the_median_channel(student: Any, cases: Any) -> None:
    """Channels are compared with the median reach, which a loud one does not move."""
    for width in (17, 48):
        loudest, quiet = map(int, draw_channels(cases, width, 2))
        x = noisy(cases, 21, width, [quiet], 12.0)
        x[:, loudest] *= 5000  # raises the mean of the reaches above 100, and their spread too
        _expect_channels(student.outlier_channels(x, 6.0), [loudest, quiet], given=x)
    reaches = cases.rng.permutation(np.repeat([1.0, 3.0, 4.75, 7.0], [16, 14, 1, 1]))  # the middle two are 1 and 3: 2
    x = np.float32(reaches * (-1.0) ** np.arange(10)[:, None])  # any measure of size is proportional to the reach
    _expect_channels(student.outlier_channels(x, 2.5), np.flatnonzero(reaches > 5), given=x)


@check(
    "outlier_channels-relative",
    points=1,
    catches="compares with the threshold itself, or with standard deviations",
    hint="ten times larger data has the same outliers",
)
def the_size_of_the_data_does_not_matter(student: Any, cases: Any) -> None:
    """Scaling all of x, however far, changes nothing."""
    loud = draw_channels(cases, 32, 2)
    x = noisy(cases, 65, 32, loud, 20.0)
    x[:, loud[0]] *= 2
    for factor in (2.0**-40, 1.0, 2.0**40):
        _expect_channels(student.outlier_channels(x * np.float32(factor), 5.0), loud, given=f"{factor} · x")
    _expect_channels(student.outlier_channels(x, 60.0), loud[:0], given="a threshold that no channel reaches")


@check(
    "outlier_channels-strict",
    points=1,
    catches="counts a channel that reaches exactly the threshold",
    hint="more than `threshold` times as far: >, not >=",
)
def exactly_the_threshold_is_not_more(student: Any, cases: Any) -> None:
    """A channel that reaches exactly `threshold` times as far as the median is none; the next float is one."""
    for threshold in (2.0, 4.0, 8.0):
        at, above = draw_channels(cases, 17, 2)
        x = noisy(cases, 9, 17)
        x[:, at] *= np.float32(threshold)
        x[:, above] = x[:, at]
        x[np.abs(x[:, above]).argmax(), above] = np.nextafter(np.float32(threshold), np.float32(np.inf))
        _expect_channels(student.outlier_channels(x, threshold), [above], given=x)
        silent = np.where(np.arange(17) == above, x, np.float32(0))  # a median of 0, and 0 is not more than that
        _expect_channels(student.outlier_channels(silent, threshold), [above], given=silent)


@check(
    "outlier_channels-refuses",
    points=1,
    catches="compares with NaN, which is never more, or takes the maximum of nothing",
    hint="np.isfinite(x).all(), and np.argwhere for the first that is not",
)
def what_has_no_reach_is_refused(student: Any, cases: Any) -> None:
    """Nothing at all, NaN and infinity are refused with a ValueError; the message names the index of the first."""
    for value in (np.nan, np.inf, -np.inf):
        x = noisy(cases, 5, 16)
        where = (int(cases.rng.integers(1, 4)), int(cases.rng.integers(6, 16)))  # numbers that are not T
        x[4, [2, 15]], x[where] = np.nan, value  # the first counts, row by row
        given = f"{value} at {where} in shape {x.shape}"
        expect_raises(ValueError, lambda x=x: student.outlier_channels(x, 4.0), given=given, naming=where)
    plain_array(student.outlier_channels(noisy(cases, 5, 16), 4.0))  # this one is not
    for shape in ((0, 4), (3, 0)):
        empty = np.zeros(shape, np.float32)
        expect_raises(ValueError, lambda x=empty: student.outlier_channels(x, 4.0), given=f"shape {shape}")


def _expect_channels(got: Any, expected: Any, given: Any) -> None:
    found = plain_array(got, given)
    found = found if found.size else found.astype(int)  # an empty list has no dtype of its own
    expect_values(found, np.asarray(expected, int), given, any_width=True)


@check(
    "split_outliers-ordinary",
    points=1,
    catches="leaves the outliers inside amax, or takes one scale for all tokens",
    hint="quantise x[:, ordinary] alone, one group as long as there are ordinary channels",
    uses=("outlier_channels",),
)
def ordinary_channels_have_a_scale_of_their_own(student: Any, cases: Any) -> None:
    """The scale of a token is that of its ordinary channels alone."""
    for bits, n_tokens, width in ((4, 33, 16), (3, 5, 64), (8, 17, 40)):
        x, loud = _split_case(cases, bits, n_tokens, width)
        ordinary = np.setdiff1d(np.arange(width), loud)
        got = _decoded(student.split_outliers(x, bits, THRESHOLD), x)[:, ordinary]
        expected = fp4kv.split_outliers(x, bits, THRESHOLD).decoded[:, ordinary]
        tolerance = DECODED_ULPS * FLOAT32_ULP * np.abs(expected)
        expect_close(got, expected, tolerance, given={"bits": bits, "the ordinary channels of x": x[:, ordinary]})


@check(
    "split_outliers-outliers",
    points=1,
    catches="stores the outliers as integers, or keeps them in float32",
    hint="x.astype(np.float16) and back to float32",
    uses=("outlier_channels",),
)
def outlier_channels_come_back_as_fp16(student: Any, cases: Any) -> None:
    """The outlier channels come back as their FP16 values, the whole channel and not its large elements alone."""
    for bits, n_tokens, width in ((4, 33, 16), (2, 6, 128)):
        x, loud = _split_case(cases, bits, n_tokens, width)
        x[1, loud] = LOUD * np.e / 3
        x[::3, loud] *= np.float32(0.001)  # smaller than what is ordinary
        got = _decoded(student.split_outliers(x, bits, THRESHOLD), x)[:, loud]
        expected = x[:, loud].astype(np.float16).astype(np.float32)
        expect_close(got, expected, 0.0, given={"the loud channels of x": x[:, loud]})


@check(
    "split_outliers-saturates",
    points=1,
    catches="lets an outlier beyond the largest FP16 number become infinite",
    hint="np.clip(x, -largest, largest) before astype, with largest = np.finfo(np.float16).max",
    uses=("outlier_channels",),
)
def outliers_beyond_fp16_saturate(student: Any, cases: Any) -> None:
    """Beyond 65504, the largest FP16 number, outliers saturate."""
    x, loud = _split_case(cases, 4, 9, 16)
    x[:, loud] *= np.float32(1e4)
    got = _decoded(student.split_outliers(x, 4, THRESHOLD), x)[:, loud]
    is_beyond = np.abs(x[:, loud]) > LARGEST_FP16
    expected = np.where(is_beyond, np.copysign(np.float32(LARGEST_FP16), x[:, loud]), got)
    expect_close(got, expected, 0.0, given={"the loud channels of x": x[:, loud]})


@check(
    "split_outliers-bits",
    points=1,
    catches="forgets the scales, the mask of the channels, or what an outlier costs",
    hint="you derived it: split_bits",
    uses=("outlier_channels",),
)
def everything_that_is_stored_counts(student: Any, cases: Any) -> None:
    """Bits per element count outliers, ordinary elements, scales and one bit per channel, once."""
    for bits, n_tokens, width in ((4, 33, 16), (2, 5, 64), (8, 18, 40)):
        x, _ = _split_case(cases, bits, n_tokens, width)
        got = as_cached(student.split_outliers(x, bits, THRESHOLD)).bits_per_element
        expected = fp4kv.split_outliers(x, bits, THRESHOLD).bits_per_element
        expect_close(got, expected, BITS_TOLERANCE, given={"bits": bits, "x": x})


@check(
    "split_outliers-threshold",
    points=1,
    catches="splits off other channels than outlier_channels names",
    hint="outlier_channels(x, threshold) says which",
    uses=("outlier_channels",),
)
def the_channels_are_those_of_outlier_channels(student: Any, cases: Any) -> None:
    """The channels that are split off are those of `outlier_channels`, at every threshold."""
    x = noisy(cases, 19, 32) * np.float32(2.0) ** cases.rng.permutation(np.arange(32) % 4)
    for threshold in (1.0, 8 / 3, 5.0):  # the median reach is 3, between 2 and 4
        decoded = _decoded(student.split_outliers(x, 4, threshold), x)
        error = np.abs(decoded - x.astype(np.float64))
        split = np.flatnonzero((error <= 2 * FP16_ULP * np.abs(x)).all(axis=0)).tolist()
        expected = fp4kv.outlier_channels(x, threshold).tolist()
        if split == expected:
            continue
        own = plain_array(student.outlier_channels(x, threshold)).tolist()  # a slip there has cost its points already
        if split != own:
            raise Mismatch(f"channels {expected} in FP16", f"channels {split}", f"threshold = {threshold:g}")


@check(
    "split_outliers-all_or_none",
    points=1,
    catches="fails where there is no outlier, or nothing but outliers",
    hint="what does an empty list of channels do to your quantiser, and what is stored then?",
    uses=("outlier_channels",),
)
def no_channel_or_every_channel_may_be_loud(student: Any, cases: Any) -> None:
    """Without outliers all is integers; where every channel is one, all is FP16 and there is no scale."""
    ordinary = clear_of_ties(noisy(cases, 11, 24), 4, Granularity.TOKEN)
    exact = noisy(cases, 11, 24).astype(np.float16).astype(np.float32)  # how outliers are stored is another check
    for x, threshold in ((ordinary, THRESHOLD), (exact, 0.25)):
        got, expected = as_cached(student.split_outliers(x, 4, threshold)), fp4kv.split_outliers(x, 4, threshold)
        given = {"threshold": threshold, "x": x}
        expect_close(got.decoded, expected.decoded, DECODED_ULPS * FLOAT32_ULP, given=given)
        _expect_split_bits(got, expected, x, given)


def _expect_split_bits(got: Cached, expected: Cached, x: np.ndarray, given: Any) -> None:
    """Compare the bits, with or without the mask: whoever forgot it has paid for that already."""
    without_mask = expected.bits_per_element - 1 / len(x)
    if abs(got.bits_per_element - without_mask) > BITS_TOLERANCE:
        expect_close(got.bits_per_element, expected.bits_per_element, BITS_TOLERANCE, given=given)


def _split_case(cases: Any, bits: int, n_tokens: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x, whose ordinary channels are clear of ties, and its loud channels: one in eight."""
    loud = draw_channels(cases, width, width // 8)
    x = noisy(cases, n_tokens, width) * np.float32(cases.rng.uniform(0.7, 1, (n_tokens, 1)))
    ordinary = np.setdiff1d(np.arange(width), loud)
    x[:, ordinary] = clear_of_ties(x[:, ordinary], bits, Granularity.TOKEN)
    x[:, loud] *= np.float32(LOUD * np.pi / 3)
    return x, loud


def _decoded(got: Any, x: np.ndarray) -> np.ndarray:
    """Return what came back, if it has the shape of x."""
    decoded = as_cached(got).decoded
    if decoded.shape != x.shape or decoded.dtype.kind != "f":
        raise Mismatch(f"decoded: floats of shape {x.shape}", f"{decoded.dtype} of shape {decoded.shape}")
    return decoded
