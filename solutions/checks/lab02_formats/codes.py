"""Checks of values ↔ codes and codes ↔ bytes."""

from typing import Any

import fp4kv
import numpy as np
from fp4kv import decode_e2m1, encode_e2m1
from labkit import formats
from labkit.expect import expect_bytes, expect_codes, expect_raises, expect_values

from autograder.checks import Registry

from .inputs import expect_refused, signed

checks = Registry()
check = checks.check


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
    x = signed(cases, magnitudes).astype(np.float32)
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
    x = signed(cases, np.concatenate([[0.5], edges, cases.rng.uniform(0.26, 0.74, 13)])).astype(np.float32)
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
    expect_refused(cases, student.encode_e2m1)


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
    codes[2, cases.rng.integers(4)] = 255  # not the first
    where = (int(cases.rng.integers(2)), int(cases.rng.integers(4)))
    codes[where] = 16
    expect_raises(ValueError, lambda: student.decode_e2m1(codes), given=codes, naming=where)


@check(
    "pack_nibbles-order",
    points=1,
    catches="swaps the halves of a byte, or pairs distant elements",
    hint="codes 2 and 7 make 0x72, not 0x27; neighbours share a byte",
)
def the_even_element_is_low(student: Any, cases: Any) -> None:
    """The even element lies in the low half of its byte, its neighbour in the high half."""
    codes = np.append(np.uint8([7, 2, 5, 9]), cases.rng.integers(0, 16, 60).astype(np.uint8))
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
    for wrong in (16, int(cases.rng.integers(17, 256))):
        for codes in (np.uint8([1, 2, 3, wrong]), np.uint8([wrong, 2, 3, 1])):
            expect_raises(ValueError, lambda codes=codes: student.pack_nibbles(codes), given=codes)


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
