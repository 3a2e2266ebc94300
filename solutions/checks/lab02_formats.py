"""Checks of lab 2: points, inputs and expected values stand here and nowhere else.

A slip in one function costs once. The inputs for a later function therefore stay away from the traps of the
earlier ones that it calls: no ties and no value near 0.5 for E2M1, no ties and nothing below 2^-6 for E4M3,
unless the check is about them. Ties of quotients that float32 and float64 may see differently are kept away by
margins that are derived beside them; where a quotient is a tie here, it is one in either.
"""

import math
from typing import Any

import fp4kv
import numpy as np
from fp4kv import decode_e2m1, encode_e2m1, quantise_e2m1, quantise_int, round_to_e4m3, ue8m0_exponent
from labkit import formats
from labkit.expect import (
    Mismatch,
    expect_bytes,
    expect_close,
    expect_codes,
    expect_raises,
    expect_values,
    plain_array,
)
from labkit.formats import QuantisedE2M1, QuantisedInt, ScaleRule
from labkit.suspects import lab02 as suspects

from autograder.checks import Registry

checks = Registry()
check = checks.check

FLOAT32_ULP = 2.0**-23
"""One step of float32, relative to a power of two: results that are rounded up to twice differ by at most this."""

DECIBEL_TOLERANCE = 0.01
"""Sums of up to 2^12 squares in float32, one after the other, are off by less than 2^12 · 2^-24; 10 log10 of
1 + 2^-12 is 0.001 dB, and the ratio holds two such sums."""

CODE_MARGIN = 1e-3
"""Least distance of a quotient of integers from a tie, in codes. x - m in float32 is off by half a step of 8, 5e-7,
which is 2e-5 codes at the finest scale used here, 5/255."""

SCALE_MARGIN = 0.02
"""Scales are asked for at amax = 6s(1 ± 0.02): E4M3 rounds to s up to 1/32 away, so no tie is near."""

E4M3_NORMAL = np.array([(8 + m) / 8 * 2.0**e for e in range(-6, 9) for m in range(8)][:-1])
E2M1_CLEAR = np.array([0.95, 1.1, 1.35, 1.6, 1.9, 2.2, 2.7, 3.2, 3.7, 4.6, 5.3, 5.9])
"""Quotients of codes 2 to 7 that lie at least 4 % away from every tie."""

BESIDE_A_SCALE_TIE = np.nextafter(np.float32(6 * 1.1875), np.float32(0))
"""An amax whose sixth stays below 1.1875, halfway between two scales; times float32(1/6) it is 1.1875."""


# Derive


@check(
    "tie_codes-even",
    points=1,
    catches="sends a tie to the odd code, away from zero or towards it",
    hint="write the codes of both neighbours in binary and take the one that ends in 0",
    per_student=False,
)
def each_tie_goes_to_the_even_neighbour(student: Any, cases: Any) -> None:
    """Each of the seven ties goes to the neighbour with the even code."""
    expected = encode_e2m1(formats.E2M1_TIES)
    expect_values(student.tie_codes(), expected, given=formats.E2M1_TIES, any_width=True)


@check(
    "largest_amax-normal",
    points=1,
    catches="takes a whole step, the wrong side or one relative step for all scales",
    hint="how far is it to the next scale, and where between the two does rounding turn?",
)
def normal_scales_reach_half_a_step_up(student: Any, cases: Any) -> None:
    """From 2^-6 on, the steps between scales grow with each power of two."""
    drawn = cases.rng.choice(E4M3_NORMAL[:-1], 8, replace=False)
    _expect_largest_amax(student, [*drawn, 1.875, 2.0**-6])


@check(
    "largest_amax-subnormal",
    points=1,
    catches="lets the steps shrink below 2^-6",
    hint="below 2^-6 the distance from one scale to the next no longer changes",
)
def subnormal_scales_keep_their_step(student: Any, cases: Any) -> None:
    """Below 2^-6 all steps are 2^-9, so that the smallest scales clip most."""
    _expect_largest_amax(student, cases.rng.permutation(np.arange(1, 8) * 2.0**-9))


@check(
    "largest_amax-top",
    points=1,
    catches="forgets that the largest scale saturates",
    hint="which scale does a group with an amax of a million get?",
    per_student=False,
)
def the_largest_scale_takes_all_above(student: Any, cases: Any) -> None:
    """The largest scale takes every amax above it."""
    expect_values(student.largest_amax(formats.E4M3_MAX), math.inf, given=formats.E4M3_MAX)


def _expect_largest_amax(student: Any, scales: Any) -> None:
    grid = np.concatenate([np.arange(1, 8) * 2.0**-9, E4M3_NORMAL])
    for s in map(float, scales):
        after = grid[np.searchsorted(grid, s) + 1]
        expect_values(student.largest_amax(s), 6 * (s + after) / 2, given=s, any_width=True)


@check(
    "magnitude_range-largest",
    points=1,
    catches="leaves out the 6 of E2M1, or the tensor scale",
    hint="the largest code times the largest group scale times the tensor scale",
)
def largest_is_code_times_scale_times_tensor_scale(student: Any, cases: Any) -> None:
    """The largest magnitude is the largest code times the largest scale, times t where there is one."""
    for rule, amax, t in _tensors(cases):
        _expect_near(_pair(student.magnitude_range(rule, amax))[1], 6 * 448 * t, given=f"{rule.name}, {amax}")


@check(
    "magnitude_range-vanishes",
    points=1,
    catches="takes the smallest scale, or the smallest code under it, for the end",
    hint="which quotients are rounded to code 0? The last of them, under the smallest scale, times t",
)
def a_group_vanishes_at_the_first_tie_of_the_smallest_scale(student: Any, cases: Any) -> None:
    """A group vanishes when its amax, under the smallest scale, is still rounded to 0."""
    for rule, amax, t in _tensors(cases):
        _expect_near(_pair(student.magnitude_range(rule, amax))[0], 2.0**-9 * t / 4, given=f"{rule.name}, {amax}")


def _tensors(cases: Any) -> list[tuple[ScaleRule, float, float]]:
    """Return scale rules with the tensor's amax and the tensor scale."""
    drawn = [float(2.0 ** cases.rng.uniform(-20, 20)) for _ in range(3)]
    one = [(ScaleRule.GROUP, amax, 1.0) for amax in drawn[:2]]
    return [*one, *((ScaleRule.TENSOR_AND_GROUP, amax, amax / 2688) for amax in drawn)]


def _pair(got: Any) -> Any:
    found = plain_array(got)
    if found.shape != (2,):
        raise Mismatch("two numbers", f"an array of shape {found.shape}")
    return found


def _expect_near(got: Any, expected: float, given: Any) -> None:
    """Compare with room for an answer that is computed in float32."""
    expect_close(float(got), expected, 4 * FLOAT32_ULP * abs(expected), given=given)


@check(
    "stored_bits-metadata",
    points=1,
    catches="counts the metadata for every element, or not at all",
    hint="add up the bits of one whole group, then divide by its length",
)
def metadata_is_shared(student: Any, cases: Any) -> None:
    """Metadata is stored once per group and shared by its elements."""
    drawn = (int(cases.rng.integers(2, 9)), int(2 ** cases.rng.integers(4, 9)), int(cases.rng.integers(1, 65)))
    for code_bits, length, metadata in [(4, 32, 8), (4, 32, 64), (2, 128, 8), drawn]:
        expected = (code_bits * length + metadata) / length
        expect_values(
            student.stored_bits(code_bits, length, metadata),
            expected,
            given=f"{code_bits}-bit codes, groups of {length}, {metadata} bits per group",
            any_width=True,
        )


# Implement: codes


@check(
    "encode_e2m1-ties",
    points=2,
    catches="rounds ties away from zero, or always down",
    hint="compare with < on one side of an even code and with <= on the other",
    per_student=False,
)
def ties_go_to_the_even_code(student: Any, cases: Any) -> None:
    """A value halfway between two codes goes to the even one."""
    x = np.concatenate([formats.E2M1_TIES, -formats.E2M1_TIES[1:]])
    expect_codes(student.encode_e2m1(x), encode_e2m1(x), given=x)


@check(
    "encode_e2m1-nearest",
    points=1,
    catches="does not take the nearest value, rounds twice, or does not stop at 6",
    hint="the edges between codes are the seven ties; the values beside them belong to one side",
)
def every_value_goes_to_the_nearest_code(student: Any, cases: Any) -> None:
    """Every other value, in an array of any shape, goes to the nearest code; beyond 6 that is 6."""
    beside = [tie for tie in cases.near(formats.E2M1_TIES[1:]) if tie not in formats.E2M1_TIES and tie >= 0.75]
    magnitudes = np.concatenate([beside, cases.rng.uniform(0.76, 7.5, 45), [6, 7, 1e30, formats.FLOAT32_MAX]])
    x = _signed(cases, magnitudes).astype(np.float32)
    x = np.append(x, np.float32(cases.rng.uniform(0, 0.24, 120 - x.size)))
    x = x.reshape(4, 5, 6).transpose(2, 0, 1)  # not contiguous
    expect_codes(student.encode_e2m1(x), encode_e2m1(x), given=x)

    x = formats.E2M1_TIES[1:].astype(np.float64) * (1 + 1e-12)  # ties to float32, which would round first
    expect_codes(student.encode_e2m1(x), encode_e2m1(x), given=x)


@check(
    "encode_e2m1-subnormal",
    points=1,
    catches="loses the smallest magnitude, 0.5",
    hint="what happens to 0.26 and to 0.74?",
)
def the_smallest_magnitude_is_kept(student: Any, cases: Any) -> None:
    """Values nearest to 0.5 get code 1: the smallest magnitude is not lost."""
    edges = [np.nextafter(np.float32(0.25), np.float32(1)), np.nextafter(np.float32(0.75), np.float32(0))]
    x = _signed(cases, np.concatenate([[0.5], edges, cases.rng.uniform(0.26, 0.74, 13)])).astype(np.float32)
    expect_codes(student.encode_e2m1(x), encode_e2m1(x), given=x)


@check(
    "encode_e2m1-signs",
    points=1,
    catches="drops the sign of what is rounded to zero",
    hint="np.signbit sees the sign of -0.0, a comparison with 0 does not",
)
def the_sign_is_kept_at_zero_too(student: Any, cases: Any) -> None:
    """Bit 3 is the sign of the value, also where the value is rounded to zero, and of -0.0."""
    small = -cases.rng.uniform(0, 0.24, 4)
    x = np.float32([0.0, -0.0, *small, -1e-30, -formats.FLOAT32_TINY, 1e-30, -1.0, 1.0])
    expect_codes(student.encode_e2m1(x), encode_e2m1(x), given=x)


@check(
    "encode_e2m1-refuses",
    points=1,
    catches="gives NaN or infinity a code",
    hint="np.isfinite tells both apart from the rest; name the index of the first in the message",
)
def what_has_no_code_is_refused(student: Any, cases: Any) -> None:
    """NaN and infinity are refused with a ValueError that names the index of the first."""
    _expect_refused(cases, student.encode_e2m1)


@check(
    "decode_e2m1-values",
    points=1,
    catches="shifts the exponent, adds the leading one to code 1, or forgets the sign",
    hint="exponent bits 00 mean no leading one",
    reveal=True,
)
def every_code_has_its_value(student: Any, cases: Any) -> None:
    """Every code from 0 to 15 has its value, in an array of any shape, as float32."""
    codes = cases.rng.permutation(np.array([c for c in range(16) if c != 8] * 2, np.uint8)).reshape(2, 5, 3)
    expect_values(student.decode_e2m1(codes), decode_e2m1(codes), given=codes)


@check(
    "decode_e2m1-negative_zero",
    points=1,
    catches="makes code 8 a positive zero",
    hint="-np.float32(0) keeps its sign, 0 - np.float32(0) does not",
    reveal=True,
)
def code_eight_is_negative_zero(student: Any, cases: Any) -> None:
    """Code 8 is -0.0: its sign bit is set."""
    codes = np.uint8([[8, 0], [0, 8]])
    expect_values(student.decode_e2m1(codes), decode_e2m1(codes), given=codes, signed_zeros=True)


@check(
    "decode_e2m1-refuses",
    points=1,
    catches="decodes a number that is no code",
    hint="look for codes above 15 before you decode; name the index of the first",
)
def no_code_above_fifteen(student: Any, cases: Any) -> None:
    """A number above 15 is no code: a ValueError names its index."""
    codes = cases.rng.integers(0, 16, (3, 4)).astype(np.uint8)
    where = tuple(int(cases.rng.integers(n)) for n in codes.shape)
    codes[where] = cases.rng.integers(16, 256)
    expect_raises(ValueError, lambda: student.decode_e2m1(codes), given=codes, naming=where)


@check(
    "pack_nibbles-order",
    points=1,
    catches="swaps the halves of a byte, or pairs distant elements",
    hint="codes 2 and 7 make 0x72, not 0x27; neighbours share a byte",
)
def the_even_element_is_low(student: Any, cases: Any) -> None:
    """The even element lies in the low half of its byte, its neighbour in the high half."""
    codes = np.append(np.uint8([2, 7, 9, 5]), cases.rng.integers(0, 16, 60).astype(np.uint8))
    expect_bytes(student.pack_nibbles(codes), fp4kv.pack_nibbles(codes), given=codes)


@check(
    "pack_nibbles-shape",
    points=1,
    catches="packs along another axis, or flattens",
    hint="index the last axis with [..., 0::2] and leave the others alone",
)
def only_the_last_axis_halves(student: Any, cases: Any) -> None:
    """The last axis halves, the others stay."""
    codes = np.repeat(cases.rng.permutation(16).astype(np.uint8)[:6], 8).reshape(2, 3, 8)  # equal halves: any order
    expect_bytes(student.pack_nibbles(codes), fp4kv.pack_nibbles(codes), given=codes)


@check(
    "pack_nibbles-refuses",
    points=1,
    catches="drops or pads the odd element, or lets a code spill into its neighbour",
    hint="look at codes.shape[-1] and at the largest code before you pack",
)
def odd_widths_and_no_codes_are_refused(student: Any, cases: Any) -> None:
    """An odd number of codes, or a number that is no code, is refused with a ValueError."""
    odd = np.zeros((3, int(2 * cases.rng.integers(1, 5) + 1)), np.uint8)
    expect_raises(ValueError, lambda: student.pack_nibbles(odd), given=f"shape {odd.shape}")
    codes = np.uint8([1, 2, 3, int(cases.rng.integers(16, 256))])
    expect_raises(ValueError, lambda: student.pack_nibbles(codes), given=codes)


@check(
    "unpack_nibbles-order",
    points=1,
    catches="swaps the halves of a byte, separates them, or keeps fewer than four bits",
    hint="0x72 gives 2, then 7",
)
def the_low_half_comes_first(student: Any, cases: Any) -> None:
    """The low half of a byte comes first, and each half keeps all four bits."""
    packed = np.append(np.uint8([0x72, 0x59, 0xF8]), cases.rng.integers(0, 256, 61).astype(np.uint8))
    expect_codes(student.unpack_nibbles(packed), fp4kv.unpack_nibbles(packed), given=packed)


@check(
    "unpack_nibbles-shape",
    points=1,
    catches="flattens, or doubles another axis",
    hint="make room with shape (*packed.shape[:-1], 2 * packed.shape[-1])",
)
def only_the_last_axis_doubles(student: Any, cases: Any) -> None:
    """The last axis doubles, the others stay."""
    packed = np.repeat(cases.rng.integers(0, 4, 6).astype(np.uint8) * 17, 4).reshape(2, 3, 4)  # equal halves, two bits
    expect_codes(student.unpack_nibbles(packed), fp4kv.unpack_nibbles(packed), given=packed)


# Implement: scales


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
    x = _signed(cases, magnitudes).astype(np.float32).reshape(5, 12).T
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
    x = _signed(cases, np.append(ties, 2.0**-10)).astype(np.float32)
    expect_values(student.round_to_e4m3(x), round_to_e4m3(x), given=x)


@check(
    "round_to_e4m3-subnormal",
    points=1,
    catches="flushes values below 2^-6 to zero, or goes on with finer steps",
    hint="a step is never smaller than 2^-9",
)
def small_values_keep_the_smallest_step(student: Any, cases: Any) -> None:
    """Below 2^-6 the steps stay 2^-9."""
    steps = cases.rng.integers(0, 8, 20) + cases.rng.uniform(-0.45, 0.45, 20)
    x = _signed(cases, np.append(np.abs(steps), [0.4995, 0.5005]) * 2.0**-9).astype(np.float32)
    expect_values(student.round_to_e4m3(x), round_to_e4m3(x), given=x)


@check(
    "round_to_e4m3-saturates",
    points=1,
    catches="gives NaN or 480 above 448, or stops at 240",
    hint="clip to ±448 before you round",
)
def large_values_become_448(student: Any, cases: Any) -> None:
    """Values from 240 to 448 are still exact steps; above 448 everything is 448."""
    x = np.array([250, 290, 350, 447, 449, 463.9, 464, 465, 480, 1e4, 1e30, *cases.rng.uniform(449, 1000, 5)])
    x = _signed(cases, x).astype(np.float32)
    expect_values(student.round_to_e4m3(x), round_to_e4m3(x), given=x)


@check(
    "round_to_e4m3-refuses",
    points=1,
    catches="lets NaN or infinity through, clipped or not",
    hint="np.clip makes 448 of infinity: look before you clip",
)
def scales_must_be_finite(student: Any, cases: Any) -> None:
    """NaN and infinity are refused with a ValueError that names the index of the first."""
    _expect_refused(cases, student.round_to_e4m3)


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
    catches="takes the logarithm of zero, or lets tiny groups choose tiny scales",
    hint="raise amax to 1e-4 first",
)
def small_groups_count_as_the_floor(student: Any, cases: Any) -> None:
    """What is smaller than 1e-4 counts as 1e-4, zero included."""
    amax = np.float32([0.0, formats.FLOAT32_TINY, 1e-30, *10.0 ** cases.rng.uniform(-20, -4.5, 4), 1e-4])
    expect_values(student.ue8m0_exponent(amax), ue8m0_exponent(amax), given=amax, any_width=True)


# Implement: tensors


@check(
    "quantise_e2m1-scales",
    points=2,
    catches="takes one scale for the tensor, groups of another length, or a maximum without magnitudes",
    hint="reshape to (..., groups, 16) and take the largest magnitude of each group",
)
def each_group_has_its_scale(student: Any, cases: Any) -> None:
    """Each group of 16 has its own scale, E4M3(amax / 6), of the largest magnitude whatever its sign."""
    amax = _scattered_amax(cases, (2, 3, 4))
    x = cases.rng.uniform(-0.9, 0.9, (*amax.shape, 16)) * amax[..., None]
    peak = cases.rng.integers(0, 16, amax.shape)
    np.put_along_axis(x, peak[..., None], _signed(cases, amax)[..., None], -1)
    x = np.float32(x).reshape(2, 3, 64)
    expect_values(_e2m1(student.quantise_e2m1(x)).scales, quantise_e2m1(x).scales, given=x)


@check(
    "quantise_e2m1-codes",
    points=1,
    catches="divides by amax / 6 itself, not by the scale that is stored",
    hint="the reader has only the stored scale: divide by that one",
)
def elements_are_divided_by_the_stored_scale(student: Any, cases: Any) -> None:
    """Elements are divided by the scale that is stored, not by amax / 6."""
    quotients = np.tile([6.3, 5.2, 3.6, 2.6], (6, 4))
    quotients[:, 4:] = cases.rng.choice(E2M1_CLEAR, (6, 12))
    quotients[:, 8:] *= cases.rng.choice([-1, 1], (6, 8))
    x = np.float32(quotients * 2.0 ** cases.rng.integers(-5, 7)).reshape(3, 32)  # one amax: any grouping does
    expect_codes(_e2m1(student.quantise_e2m1(x)).codes, quantise_e2m1(x).codes, given=x)


@check(
    "quantise_e2m1-floor",
    points=1,
    catches="clamps the scale at the wrong floor, or divides zero by zero",
    hint="clamp amax / 6 to 2^-9 before it is rounded; a group of zeros then has a scale too",
)
def small_groups_keep_the_smallest_scale(student: Any, cases: Any) -> None:
    """No scale is smaller than 2^-9: small groups keep what they can, and zeros stay zeros."""
    x = np.zeros((5, 16), np.float32)
    x[1, 3], x[2, 0] = 1e-5, 1e-30
    for row in (3, 4):
        x[row, :8] = cases.rng.choice([1, 1.5, 2], 8) * 2.0**-9
    expected = quantise_e2m1(x)
    got = _e2m1(student.quantise_e2m1(x))
    expect_values(got.scales, expected.scales, given=x)
    expect_codes(got.codes, expected.codes, given=x)
    for rule in ScaleRule:
        zeros = _e2m1(student.quantise_e2m1(x[:1], rule))
        expect_codes(zeros.codes, np.zeros((1, 16), np.uint8), given=f"zeros, {rule.name}")


@check(
    "quantise_e2m1-division",
    points=1,
    catches="multiplies by the reciprocal",
    hint="x * (1 / s) is rounded twice: write x / s",
)
def quotients_are_rounded_once(student: Any, cases: Any) -> None:
    """The quotient is rounded once: a reciprocal would move this element across a tie."""
    rows = []
    for s in np.float32([1.75, 1.875]) * np.float32(2.0 ** cases.rng.integers(-4, 7)):
        moved = [x for x in cases.near(formats.E2M1_TIES[2:] * s) if _reciprocal_falls_on_a_tie(x, s)]
        rows.append(np.resize(np.float32([6 * s, *moved]), 16))
    rows.append(np.resize(BESIDE_A_SCALE_TIE * np.float32(2.0 ** cases.rng.integers(-4, 7)), 16))
    x = np.stack(rows)
    got, expected = _e2m1(student.quantise_e2m1(x)), quantise_e2m1(x)
    expect_values(got.scales, expected.scales, given=x)
    expect_codes(got.codes, expected.codes, given=x)


@check(
    "quantise_e2m1-tensor_scale",
    points=2,
    catches="leaves t out of the codes or out of the group scales, or takes another range than 2688",
    hint="t = amax / 2688; the group scale is (amax of the group / 6) / t; elements are divided by s · t",
)
def two_scales_multiply(student: Any, cases: Any) -> None:
    """With a tensor scale t = amax / 2688, group scales are relative to t and codes to s · t."""
    t = float(2.0 ** cases.rng.uniform(-12, 6))
    amax = _scattered_amax(cases, (2, 4)) * t
    amax[1, 2] = 2688 * t
    x = (amax[..., None] / 6) * cases.rng.choice([1, 1.5, 2, 3, 4], (2, 4, 16))
    x[..., 5] = amax
    x = np.float32(x).reshape(2, 64)
    got, expected = _e2m1(student.quantise_e2m1(x, ScaleRule.TENSOR_AND_GROUP)), _two_level(x)
    _expect_near(got.tensor_scale, expected.tensor_scale, given=f"amax = {np.abs(x).max()}")
    expect_values(got.scales, expected.scales, given=x)
    expect_codes(got.codes, expected.codes, given=x)


@check(
    "quantise_e2m1-refuses",
    points=1,
    catches="pads or cuts a width that 16 does not divide, or lets NaN or infinity through",
    hint="look at x.shape[-1] % 16 first; encode_e2m1 sees the quotients, not your x",
)
def what_cannot_be_grouped_is_refused(student: Any, cases: Any) -> None:
    """Widths that 16 does not divide, NaN and infinity are refused with a ValueError."""
    for width in (8, int(16 * cases.rng.integers(1, 4) + cases.rng.integers(1, 16))):
        x = np.ones((16, width), np.float32)
        expect_raises(ValueError, lambda x=x: student.quantise_e2m1(x), given=f"shape {x.shape}")
    _expect_refused(cases, student.quantise_e2m1, shape=(3, 32))


def _scattered_amax(cases: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an amax for each group whose normal scale no rounding of amax / 6 can change."""
    scales = cases.rng.choice(E4M3_NORMAL[8:-16], shape)
    return np.asarray(6 * scales * (1 + cases.rng.uniform(-SCALE_MARGIN, SCALE_MARGIN, shape)))


def _two_level(x: np.ndarray) -> QuantisedE2M1:
    return quantise_e2m1(x, ScaleRule.TENSOR_AND_GROUP)


def _reciprocal_falls_on_a_tie(x: np.float32, s: np.float32) -> bool:
    """Return whether x / s has an odd code beside a tie and x · (1 / s) is that tie, which goes to the even one."""
    product = x * (np.float32(1) / s)
    return bool(x / s != product and product in formats.E2M1_TIES and encode_e2m1(np.array(x / s)) % 2)


def _e2m1(got: Any) -> QuantisedE2M1:
    if not isinstance(got, tuple) or len(got) != 3:
        raise Mismatch("a QuantisedE2M1: codes, scales, tensor_scale", f"a {type(got).__name__}")
    codes, scales, tensor_scale = got
    if type(tensor_scale) is not float and not isinstance(tensor_scale, np.floating):
        raise Mismatch("a float as tensor_scale", f"a {type(tensor_scale).__name__}")
    return QuantisedE2M1(codes, scales, float(tensor_scale))


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
        got, expected = _integers(student.quantise_int(x, bits, 32)), quantise_int(x, bits, 32)
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
        got = _integers(student.quantise_int(x, bits, 16, -1, False))
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
        got = _integers(student.quantise_int(x, bits, 16))
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
            _integers(student.quantise_int(x, 8, group, axis, False)),
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
    catches="divides zero by zero",
    hint="a scale is never smaller than formats.FLOAT32_TINY",
)
def constant_groups_are_exact(student: Any, cases: Any) -> None:
    """A group of zeros gives zeros, and an affine constant group decodes to itself."""
    x = np.float32(np.repeat([0, 0.1, *cases.rng.normal(size=4)], 8)).reshape(2, 24)
    got = _integers(student.quantise_int(x, 4, 8, -1, False))
    _expect_positive(got.scales, given=x)
    expect_values(got.minimums, x[:, ::8], given=x)
    expect_values(got.codes, np.zeros((2, 24), np.int16), given=x)
    zeros = _integers(student.quantise_int(x[0, :8], 6, 8))
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
    _expect_refused(cases, lambda x: student.quantise_int(x, 8, 16), shape=(2, 32))


def _integers(got: Any) -> QuantisedInt:
    if not isinstance(got, tuple) or len(got) != 5:
        raise Mismatch("a QuantisedInt: codes, scales, minimums, group, axis", f"a {type(got).__name__}")
    codes, scales, minimums, group, axis = got
    if any(isinstance(part, bool) or not isinstance(part, int | np.integer) for part in (group, axis)):
        raise Mismatch("whole numbers as group and axis", f"{type(group).__name__} and {type(axis).__name__}")
    return QuantisedInt(codes, scales, minimums, int(group), int(axis))


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


@check(
    "dequantise-e2m1",
    points=1,
    catches="gives a scale to the wrong elements",
    hint="np.repeat repeats each scale, np.tile repeats the row of scales",
)
def each_scale_serves_its_group(student: Any, cases: Any) -> None:
    """Each scale serves the 16 codes of its group."""
    quantised = QuantisedE2M1(_plain_codes(cases, (2, 3, 64)), _distinct_scales(cases, (2, 3, 4)), 1.0)
    expect_values(student.dequantise(quantised), fp4kv.dequantise(quantised), given=quantised.codes)


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
    for axis, group in ((0, 2), (1, 3)):
        shape = tuple(n // group if i == axis else n for i, n in enumerate(codes.shape))
        quantised = QuantisedInt(codes, _distinct_scales(cases, shape), np.zeros(shape, np.float32), group, axis)
        given = {"axis": axis, "group": group, "codes": codes}
        expect_values(student.dequantise(quantised), fp4kv.dequantise(quantised), given=given)


def _plain_codes(cases: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return positive codes without the subnormal: no trap of decode_e2m1 among them."""
    return cases.rng.choice(np.uint8([0, 2, 3, 4, 5, 6, 7]), shape)


def _distinct_scales(cases: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return small multiples of 1/8, neighbours unequal: products with codes are exact in float32."""
    return np.float32(cases.rng.permutation(np.arange(1, 1 + math.prod(shape)))).reshape(shape) / np.float32(8)


# Benchmark


@check(
    "snr_db-decibels",
    points=1,
    catches="turns the ratio over, doubles the decibels, averages over rows or takes out the mean",
    hint="sum the squares of x and of the error over all elements, then divide, then take 10 log10",
)
def decibels_of_the_ratio_of_energies(student: Any, cases: Any) -> None:
    """The ratio of energies over all elements, ten times its logarithm."""
    x = np.float32(cases.rng.normal(3, 1, (4, 8, 16)))
    error = cases.rng.normal(0.02, 0.01, x.shape) * np.arange(1, 5)[:, None, None]
    approximation = np.float32(x + error)
    expect_close(student.snr_db(x, approximation), _snr(x, approximation), DECIBEL_TOLERANCE, given=f"shape {x.shape}")


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
    x = np.float32(cases.rng.normal(0.5, 1, (4, 96)))
    bits = tuple(map(int, cases.rng.permutation([8, 4, 2])))
    expected = []
    for width in bits:
        quantised = _integers(student.quantise_int(x, width, 32, -1, symmetric))
        ratio = plain_array(student.snr_db(x, student.dequantise(quantised)))
        expected.append(float(ratio) if ratio.size == 1 else math.nan)
    if len(set(expected)) < len(bits) or not np.all(np.isfinite(expected)):
        raise Mismatch("quantise_int, dequantise and snr_db that tell 8, 4 and 2 bits apart", f"{expected} dB")
    got = student.snr_by_bits(x, bits, symmetric)
    expect_close(got, np.array(expected), DECIBEL_TOLERANCE, given={"bits": bits, "symmetric": symmetric})


def _snr(x: np.ndarray, approximation: np.ndarray) -> float:
    x, approximation = x.astype(np.float64), approximation.astype(np.float64)
    return float(10 * np.log10(np.sum(x**2) / np.sum((x - approximation) ** 2)))


# Debug

PARTS = suspects.Parts(
    fp4kv.quantise_e2m1, fp4kv.encode_e2m1, fp4kv.pack_nibbles, fp4kv.unpack_nibbles, fp4kv.dequantise
)
FEWEST = {"half_away": 1, "lost_subnormal": 2, "swapped_nibbles": 1, "zero_to_nan": 0, "reciprocal": 4}
"""The fewest elements other than zero with which a suspect is convicted and no other.

half_away: a tie under the floor scale 2^-9, rounded to 0 by the honest one, so both halves of the byte are 0.
lost_subnormal and reciprocal: the honest codes differ from the suspect's and are not 0, so each byte that is not 0
needs two equal halves, or swapped_nibbles is convicted too; reciprocal needs another byte for the largest element,
because under the scale that a lone element chooses, its quotient is beside no tie that a reciprocal could move.
"""
LARGEST_EXHIBIT = 4096


def _convicts(suspect: str) -> None:
    """Register the check that one suspect's input convicts it."""

    def convicts_its_suspect(student: Any, cases: Any) -> None:
        x = _exhibit(student.convict(), suspect)
        if suspect not in suspects.convicted(x, PARTS):
            raise Mismatch(f"{suspect} answers otherwise than the honest quantiser", "the same answer", f"{x.tolist()}")

    convicts_its_suspect.__doc__ = f"The input for `{suspect}` makes it answer otherwise than the honest quantiser."
    check(
        f"convict-{suspect}",
        points=1,
        catches=f"does not find what {suspect} does wrong",
        hint="print suspects.convicted(x, parts) for your input, once your own functions pass their checks",
        reveal=True,
        per_student=False,
    )(convicts_its_suspect)


for _suspect in suspects.SUSPECTS:
    _convicts(_suspect)


@check(
    "convict-alone",
    points=1,
    catches="convicts an innocent suspect too",
    hint="two equal codes in a byte cannot convict swapped_nibbles",
    reveal=True,
    per_student=False,
)
def no_input_convicts_another(student: Any, cases: Any) -> None:
    """Each input convicts its own suspect and none of the other four."""
    exhibits = student.convict()
    for suspect in suspects.SUSPECTS:
        x = _exhibit(exhibits, suspect)
        others = [name for name in suspects.convicted(x, PARTS) if name != suspect]
        if others:
            raise Mismatch(f"{suspect} alone", f"{', '.join(others)} convicted too", f"{x.tolist()}")


@check(
    "convict-fewest",
    points=1,
    catches="needs more elements than the mistake does",
    hint="under the smallest scale, 2^-9, a group needs no large element to set its scale",
    reveal=True,
    per_student=False,
)
def inputs_are_as_small_as_can_be(student: Any, cases: Any) -> None:
    """Each input has as few elements other than zero as convicting one suspect alone allows."""
    exhibits = student.convict()
    for suspect, fewest in FEWEST.items():
        count = int(np.count_nonzero(_exhibit(exhibits, suspect)))
        if count > fewest:
            raise Mismatch(f"fewer elements other than zero for {suspect}", f"{count}")


def _exhibit(exhibits: Any, suspect: str) -> np.ndarray:
    """Return the input for one suspect, if it is one that the quantisers accept."""
    if not isinstance(exhibits, dict) or suspect not in exhibits:
        raise Mismatch(f"a dict with an input for {suspect}", f"a {type(exhibits).__name__} without")
    found = plain_array(exhibits[suspect])
    is_sound = found.ndim > 0 and found.shape[-1] % 16 == 0 and 0 < found.size <= LARGEST_EXHIBIT
    with np.errstate(over="ignore"):
        x = found.astype(np.float32)
    if not is_sound or not np.all(np.isfinite(x)):
        raise Mismatch(
            f"finite numbers, a multiple of 16 in the last axis and at most {LARGEST_EXHIBIT}, for {suspect}",
            f"shape {found.shape}",
        )
    return x


# Inputs


def _signed(cases: Any, magnitudes: Any) -> np.ndarray:
    """Return the magnitudes with drawn signs."""
    return np.asarray(magnitudes) * cases.rng.choice([-1, 1], np.shape(magnitudes))


def _e4m3_ties(values: np.ndarray) -> np.ndarray:
    return np.asarray((values[1:] + values[:-1]) / 2)


def _expect_refused(cases: Any, call: Any, shape: tuple[int, ...] = (3, 5)) -> None:
    """Expect a ValueError that names the first element which is not finite."""
    for wrong in (np.nan, np.inf, -np.inf):
        x = np.float32(cases.rng.uniform(1, 2, shape))
        where = tuple(int(cases.rng.integers(n)) for n in shape)
        x[-1, -1] = np.nan  # not the first, unless it is drawn too
        x[where] = wrong
        expect_raises(ValueError, lambda x=x: call(x), given=f"{wrong} at {where} in shape {shape}", naming=where)
