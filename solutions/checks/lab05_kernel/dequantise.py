"""Checks of `DEQUANTISE`: run as text, checked under several thread orders, and unchecked for many values."""

from typing import Any

import numpy as np
from fp4kv.kernel_bytes import dequantise_traffic
from fp4kv.kernel_cases import E4M3_BYTES
from fp4kv.kernels import dequantise_packed
from labkit.expect import expect_values
from labkit.formats import GROUP_LENGTH
from labkit.launches import BLOCK, MAX_BLOCKS, plan_dequantise

from autograder.checks import Registry

from .inputs import ASKED_FACTOR, N_ORDERS, expect_asked, expect_moved, sorted_pairs

checks = Registry()
check = checks.check

GROUP_BYTES = GROUP_LENGTH // 2

BLOCK_GROUPS = BLOCK // GROUP_BYTES
"""Groups that fill a block, one thread for each byte."""

SCALE_ONE = 0x38
"""The byte of the scale 1."""

RAGGED = (1, 3, 31, 33)
"""Groups: a quarter of a warp, three quarters, a group less than a block, and one more."""


def _cache(cases: Any, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Return drawn bytes and scales; both codes of a byte may be any, and so may the scale."""
    packed = cases.rng.integers(0, 256, (n_groups, GROUP_BYTES), np.uint8)
    return packed, cases.rng.integers(0, E4M3_BYTES, (n_groups, 1), np.uint8)


def _expect(
    student: Any, cases: Any, *caches: tuple[np.ndarray, np.ndarray], orders: int = N_ORDERS, checked: bool = True
) -> Any:
    """Compare numbers bit for bit, whichever of two neighbours comes first, and return the last run."""
    planned = [plan_dequantise(*cache) for cache in caches]
    launches = [launch for launch, _ in planned]
    runs = cases.native.run(student.text("DEQUANTISE"), launches, orders=orders, checked=checked)
    for run in runs:
        for cache, (_, x) in zip(caches, planned, strict=True):
            expected = sorted_pairs(dequantise_packed(*cache))
            expect_values(sorted_pairs(run[x]), expected, given=f"{len(cache[0])} groups")
    return runs[-1]


@check(
    "dequantise-runs",
    points=1,
    catches="does not compile, does not run to its end, or gives other numbers than lab 2",
    hint="the runner names thread, array element and line; the comment above the loop names the steps",
    reveal=True,
    seconds=5,
)
def ordinary_bytes_are_decoded(student: Any, cases: Any) -> None:
    """A few whole blocks of a cache with scales of 1, under three thread orders."""
    packed, scales = _cache(cases, 2 * BLOCK_GROUPS)
    _expect(student, cases, (packed, np.full_like(scales, SCALE_ONE)))


@check(
    "dequantise-nibbles",
    points=1,
    catches="swaps two neighbours",
    hint="element 2j comes from the low half of byte j, element 2j + 1 from its high half",
    seconds=5,
)
def the_low_half_is_the_first_of_two(student: Any, cases: Any) -> None:
    """The low half of byte j is element 2j."""
    packed, scales = _cache(cases, BLOCK_GROUPS)
    launch, x = plan_dequantise(packed & 0x70 | 0x09, np.maximum(scales, 1))
    (run,) = cases.native.run(student.text("DEQUANTISE"), launch)
    expect_values(np.signbit(run[x][:, 0::2]), np.ones((len(x), GROUP_BYTES), bool), given="every low half negative")


@check(
    "dequantise-scales",
    points=2,
    catches="reads another group's scale, or one of them wrongly",
    hint="eight bytes of codes share a scale: scales[j / 8], through decode_e4m3",
    seconds=5,
)
def every_byte_is_exact_under_every_scale(student: Any, cases: Any) -> None:
    """Each byte under each scale from 0 to 448, bit for bit, zeros of both signs among them."""
    packed = np.tile(np.arange(256, dtype=np.uint8).reshape(-1, GROUP_BYTES), (E4M3_BYTES, 1))
    scales = np.repeat(np.arange(E4M3_BYTES, dtype=np.uint8), 256 // GROUP_BYTES)[:, None]
    mixed = cases.rng.permutation(len(packed))
    _expect(student, cases, (packed[mixed], scales[mixed]))


@check(
    "dequantise-ragged",
    points=1,
    catches="reads or writes beyond the end",
    hint="the last block has threads without a byte",
    seconds=5,
)
def any_number_of_groups_will_do(student: Any, cases: Any) -> None:
    """From one group on, any number of them, without an access beyond the end."""
    caches = [_cache(cases, n_groups) for n_groups in RAGGED]
    _expect(student, cases, *((packed, np.full_like(scales, SCALE_ONE)) for packed, scales in caches))


@check(
    "dequantise-traffic",
    points=1,
    catches="writes numbers twice, such as before and after scaling, or lets neighbouring threads write far apart",
    hint="a thread reads its byte once and writes its two numbers at once, as a float2",
    seconds=5,
)
def little_more_is_moved_than_must_be(student: Any, cases: Any) -> None:
    """The threads ask for at most 1.5 times the bytes that must be moved; transactions move at most three times."""
    packed, scales = _cache(cases, 4 * BLOCK_GROUPS)
    least = dequantise_traffic(2 * packed.size).total
    traffic = _expect(student, cases, (packed, np.full_like(scales, SCALE_ONE)), orders=2).traffic[0]
    expect_asked(traffic, least, ASKED_FACTOR, must=least)
    expect_moved(traffic, least)


@check(
    "dequantise-large",
    points=1,
    catches="takes one byte for each thread and stops, where the grid is smaller than the array",
    hint="the loop goes on `n_threads` further, until all bytes are done",
    seconds=10,
)
def an_array_may_be_larger_than_the_grid(student: Any, cases: Any) -> None:
    """More bytes than the grid has threads, compared without tracing."""
    packed, scales = _cache(cases, (MAX_BLOCKS + 256) * BLOCK_GROUPS)
    _expect(student, cases, (packed, np.full_like(scales, SCALE_ONE)), orders=1, checked=False)
