"""What the checks of lab 5 share: numbers as they come back, groups, caches, and bytes whose halves may be swapped."""

from typing import Any

import numpy as np
from labkit.cuda.traffic import SECTOR_BYTES
from labkit.expect import Mismatch, plain_array
from labkit.formats import E2M1_MAX, E2M1_VALUES, GROUP_LENGTH

CLOSE = 1e-9
"""Answers of the section *derive* are a few operations in float64, or exact whole numbers."""

BLOCK_GROUPS = 16
"""Groups that fill a block of 256 threads."""

BLOCK_BYTES = 256
"""Bytes that fill a block of 256 threads, one for each."""

ASKED_FACTOR = 1.5
"""Bytes that the threads of `quantise_pack` or `dequantise` ask for, over the least that must move.

A thread for each number reads a byte of codes twice and a scale 16 times, which lanes of a warp do at once: (16 + 16 +
64) / 73 = 1.32, the most of any right way planted. To read the floats twice is (64 + 64 + 9) / 73 = 1.88, and to write
them twice as much. The packed cache is so small beside them that to read it twice is less than a thread for each number
asks for: nothing counted tells the two apart."""

MOVED_FACTOR = 3.0
"""Bytes that transactions move, over the least.

A thread that takes a whole group by float4 touches each sector of 32 bytes twice, and moves 1.88 times the least, 2.64
if it writes codes byte by byte. By float2 it touches each sector four times, and moves 4.4; by single floats 7.9."""

N_ORDERS = 3
"""Thread orders of a checked run: the natural one, the reversed one, and a secret one for each beyond two."""


def as_number(got: Any, name: str) -> float:
    """Return one finite number as a float."""
    found = plain_array(got)
    if found.size != 1 or found.dtype.kind not in "iuf" or not np.isfinite(found).all():
        raise Mismatch(f"a number as {name}", f"shape {found.shape}, {found.dtype}" if found.size != 1 else f"{got}")
    return float(found.reshape(()))


def ordinary_groups(cases: Any, n_groups: int) -> np.ndarray:
    """Return groups whose numbers lie within 4 % of one that their scale and a code stand for, so far from any tie.

    The nearest tie of a code is 12.5 % away, at 4; the largest number is 6 times the scale exactly, in any place.
    """
    scales = np.exp2(cases.rng.integers(-5, 8, n_groups)) * cases.rng.integers(8, 16, n_groups) / 8
    codes = cases.rng.integers(0, len(E2M1_VALUES) - 1, (n_groups, GROUP_LENGTH))
    x = E2M1_VALUES[codes] * cases.rng.uniform(0.96, 1.04, codes.shape)
    x[np.arange(n_groups), cases.rng.integers(0, GROUP_LENGTH, n_groups)] = E2M1_MAX
    return np.float32(x * scales[:, None] * cases.rng.choice([-1, 1], codes.shape))


def expect_asked(traffic: Any, least: int, factor: float, must: int) -> None:
    """Expect that threads asked for no more than a factor of the least, and for no less than what they must.

    Every read in the source is counted, whatever it reads: a structure that a call would take unseen is not compiled.
    Still a count is what native code leaves behind. Right values with fewer bytes than `must` were counted short; one
    that forges its count and stays above `must` is not told from an honest one.
    """
    asked = traffic.global_bytes
    if asked < must:
        raise Mismatch(f"at least {must} bytes, which whoever has these values has moved", f"{asked} bytes counted")
    if asked > factor * least:
        raise Mismatch(f"at most {factor} × {least} bytes", f"{asked} bytes")


def expect_moved(traffic: Any, least: int) -> None:
    """Expect that transactions with global memory moved no more than `MOVED_FACTOR` times the least."""
    moved = sum(SECTOR_BYTES * int(traffic["global", verb]["sectors"]) for verb in ("reads", "writes", "updates"))
    if moved > MOVED_FACTOR * least:
        raise Mismatch(f"at most {MOVED_FACTOR:g} × {least} bytes", f"{moved} bytes in sectors of {SECTOR_BYTES}")


def whole_blocks(groups: np.ndarray) -> np.ndarray:
    """Return groups, the first of them again at the end, as many as fill the last block."""
    n_groups = -(-len(groups) // BLOCK_GROUPS) * BLOCK_GROUPS
    return np.resize(groups, (n_groups, GROUP_LENGTH))


def sorted_halves(packed: np.ndarray) -> np.ndarray:
    """Return both codes of each byte, the smaller first: the same whichever half holds which."""
    return np.sort(np.stack([packed & 15, packed >> 4], axis=-1), axis=-1)


def sorted_pairs(x: np.ndarray) -> np.ndarray:
    """Return each pair of neighbours, as bits in order: the same whichever comes first, and -0 is not 0."""
    return np.sort(x.view(np.uint32).reshape(-1, 2), axis=-1)
