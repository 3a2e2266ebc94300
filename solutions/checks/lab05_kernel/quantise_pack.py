"""Checks of `QUANTISE_PACK`: run as text, checked under several thread orders, and unchecked for many values."""

from typing import Any

import numpy as np
from fp4kv.kernel_bytes import quantise_pack_traffic
from fp4kv.kernel_cases import extreme_groups, groups_at_code_ties, groups_at_scale_ties
from fp4kv.kernels import quantise_pack
from labkit.expect import expect_bytes, expect_values
from labkit.formats import E2M1_MAX, E4M3_MIN_SUBNORMAL, GROUP_LENGTH
from labkit.launches import BLOCK, MAX_BLOCKS, plan_quantise_pack

from autograder.checks import Registry

from .inputs import (
    ASKED_FACTOR,
    BLOCK_GROUPS,
    N_ORDERS,
    expect_asked,
    expect_moved,
    ordinary_groups,
    sorted_halves,
    whole_blocks,
)

checks = Registry()
check = checks.check

RAGGED = (1, 2, 3, 15, 17, 33)
"""Groups: half a warp, one warp, half of the second; a group less than a block, and one more."""


def _runs(student: Any, cases: Any, x: np.ndarray, orders: int = N_ORDERS, checked: bool = True) -> list[Any]:
    """Return (packed, scales, run) for each order."""
    launch, (packed, scales) = plan_quantise_pack(x)
    runs = cases.native.run(student.text("QUANTISE_PACK"), launch, orders=orders, checked=checked)
    return [(run[packed], run[scales], run) for run in runs]


def _expect(student: Any, cases: Any, *groups: np.ndarray, orders: int = N_ORDERS, checked: bool = True) -> None:
    """Compare scales, and codes whichever half of a byte holds which; one sandbox serves all arrays."""
    planned = [plan_quantise_pack(x) for x in groups]
    launches = [launch for launch, _ in planned]
    for run in cases.native.run(student.text("QUANTISE_PACK"), launches, orders=orders, checked=checked):
        for x, (_, (packed, scales)) in zip(groups, planned, strict=True):
            expected = quantise_pack(x)
            expect_bytes(run[scales], expected[1], given=x)
            expect_values(sorted_halves(run[packed]), sorted_halves(expected[0]), given=x)


@check(
    "quantise_pack-runs",
    points=1,
    catches="does not compile, does not run to its end, or gives other codes than lab 2",
    hint="the runner names thread, array element and line; the comment above the loop names the steps",
    reveal=True,
    seconds=5,
)
def ordinary_numbers_are_quantised(student: Any, cases: Any) -> None:
    """A few whole blocks of ordinary numbers, under three thread orders."""
    _expect(student, cases, ordinary_groups(cases, 32))


@check(
    "quantise_pack-nibbles",
    points=1,
    catches="swaps the halves of a byte",
    hint="element 2j in the low half, element 2j + 1 in the high half",
    seconds=5,
)
def the_first_of_two_codes_is_low(student: Any, cases: Any) -> None:
    """Element 2j lies in the low half of byte j."""
    x = ordinary_groups(cases, 16)
    x[:, 1::2] = np.abs(x[:, 1::2])
    x[:, 0::2] = -np.abs(x[:, 0::2])
    for packed, _, _ in _runs(student, cases, x, orders=1):
        expect_bytes(packed & 0x88, np.full_like(packed, 0x08), given="every even element negative")


@check(
    "quantise_pack-ties",
    points=2,
    catches="rounds ties away from zero, or multiplies by a reciprocal that moves a quotient across a tie",
    hint="encode_e2m1 rounds to even; divide by the scale with __fdiv_rn",
    seconds=5,
)
def ties_go_to_even_under_every_scale(student: Any, cases: Any) -> None:
    """Quotients at a tie and beside one are coded to the nearest, ties to even, under every scale."""
    _expect(student, cases, whole_blocks(cases.rng.permutation(groups_at_code_ties())))


@check(
    "quantise_pack-scales",
    points=2,
    catches="takes the scale before all lanes have the maximum, or rounds amax / 6 twice",
    hint="after four shuffles, at distances 8, 4, 2 and 1, all 16 lanes have amax; __fdiv_rn(amax, 6)",
    seconds=5,
)
def scales_are_rounded_once(student: Any, cases: Any) -> None:
    """The scale is amax / 6, wherever in the group amax is, rounded once to E4M3, ties to even."""
    groups = groups_at_scale_ties()
    above_the_floor = np.abs(groups).max(axis=1) > E2M1_MAX * E4M3_MIN_SUBNORMAL
    x = whole_blocks(cases.rng.permutation(groups[above_the_floor]))
    for _, scales, _ in _runs(student, cases, x):
        expect_bytes(scales, quantise_pack(x)[1], given=np.abs(x).max(axis=1))


@check(
    "quantise_pack-extremes",
    points=1,
    catches="divides by a scale of 0, or lets a scale grow past 448",
    hint="the scale is at least 2^-9, also of a group of zeros; encode_e4m3 and encode_e2m1 saturate",
    seconds=5,
)
def scales_have_a_floor_and_a_ceiling(student: Any, cases: Any) -> None:
    """Groups of zeros, of numbers below every scale, and of numbers above every scale."""
    _expect(student, cases, np.tile(cases.rng.permutation(extreme_groups()), (16, 1)))


@check(
    "quantise_pack-ragged",
    points=2,
    catches="reads or writes beyond the end, or leaves lanes out that a shuffle waits for",
    hint="lanes beyond the end take part in every shuffle, with 0, and write nothing",
    seconds=5,
)
def any_number_of_groups_will_do(student: Any, cases: Any) -> None:
    """From one group on, any number of them, without an access beyond the end."""
    _expect(student, cases, *(ordinary_groups(cases, n_groups) for n_groups in RAGGED))


@check(
    "quantise_pack-traffic",
    points=1,
    catches="reads its input more than once",
    hint="read a number once, and keep it in a register",
    seconds=5,
)
def each_number_is_read_once(student: Any, cases: Any) -> None:
    """The threads ask for at most 1.5 times the bytes that must be moved."""
    run, least = _measured(student, cases)
    expect_asked(run.traffic[0], least, ASKED_FACTOR, must=least)


@check(
    "quantise_pack-sectors",
    points=1,
    catches="lets neighbouring lanes read numbers that lie far apart",
    hint="lane and element go together: 32 lanes read 128 bytes that follow each other",
    seconds=5,
)
def neighbouring_lanes_read_neighbouring_numbers(student: Any, cases: Any) -> None:
    """The transactions move at most three times the bytes that must be moved."""
    run, least = _measured(student, cases)
    expect_moved(run.traffic[0], least)


def _measured(student: Any, cases: Any) -> tuple[Any, int]:
    """Return a run whose values are right, or its traffic would mean nothing, and the least it must move."""
    x = ordinary_groups(cases, 4 * BLOCK_GROUPS)
    _expect(student, cases, x, orders=1)
    return _runs(student, cases, x, orders=1)[0][2], quantise_pack_traffic(x.size).total


@check(
    "quantise_pack-large",
    points=1,
    catches="takes 32 elements and stops, where the grid is smaller than the array",
    hint="the loop goes on `n_threads` further, until all elements are done",
    seconds=10,
)
def an_array_may_be_larger_than_the_grid(student: Any, cases: Any) -> None:
    """More elements than the grid has threads, compared without tracing."""
    n_groups = (MAX_BLOCKS + 256) * BLOCK // GROUP_LENGTH
    _expect(student, cases, ordinary_groups(cases, n_groups), orders=1, checked=False)
