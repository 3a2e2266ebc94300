"""Inputs on which a kernel that is nearly right goes wrong: shared by tests and by the hidden checks of lab 5.

Letters: `s` scale, `T` tokens, `D` head width, `B` sequences of a batch.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float32, Int32, UInt8
from labkit.formats import E2M1_MAX, E2M1_TIES, FLOAT32_MAX, FLOAT32_TINY, GROUP_LENGTH, TWO_LEVEL_RANGE

from fp4kv.kernels import dequantise_packed, quantise_pack

E4M3_BYTES: Final = 127
"""Bytes 0x00 to 0x7e stand for the scales from 0 to 448."""


class AttentionCase(NamedTuple):
    """What `decode_attention` is called with, and into how many parts the kernel cuts the context."""

    q: Float32[np.ndarray, "B heads D"]
    k_packed: UInt8[np.ndarray, "B kv_heads T D//2"]
    k_scales: UInt8[np.ndarray, "B kv_heads T D//16"]
    v_packed: UInt8[np.ndarray, "B kv_heads T D//2"]
    v_scales: UInt8[np.ndarray, "B kv_heads T D//16"]
    lengths: Int32[np.ndarray, " B"]
    n_parts: int


def adversarial_groups() -> Float32[np.ndarray, "n 16"]:
    """Return groups of 16 that convict wrong ties, wrong scales and wrong divisions, each float32 exactly as meant.

    - Under each scale from 2^-9 to 448: each tie of E2M1 times the scale, both signs, and its two float32 neighbours.
      Among them are the quotients that a product with the reciprocal moves across a tie.
    - Each tie between two scales, times 6, as the largest magnitude, and its two neighbours.
    - Zeros of both signs, numbers too small for any scale, and largest magnitudes of 2,688, where the scale is 448, and
      beyond.
    """
    return np.concatenate([groups_at_code_ties(), groups_at_scale_ties(), extreme_groups()])


def groups_at_code_ties() -> Float32[np.ndarray, "n 16"]:
    """Return the groups at ties of E2M1 under each scale."""
    return np.concatenate([_groups_at_ties(s) for s in _scales()[1:, None]])


def _scales() -> Float32[np.ndarray, " 127"]:
    """Return every scale from 0 to 448: what code 2, which is 1, stands for under each byte."""
    ones = np.full((E4M3_BYTES, GROUP_LENGTH // 2), 0x22, np.uint8)
    return dequantise_packed(ones, np.arange(E4M3_BYTES, dtype=np.uint8)[:, None])[:, 0]


def _groups_at_ties(s: Float32[np.ndarray, " 1"]) -> Float32[np.ndarray, "3 16"]:
    """Return three groups of the scale s: ties, what is just below them, and just above."""
    ties = E2M1_TIES * s
    signed = np.concatenate([ties, -ties])
    groups = np.zeros((3, GROUP_LENGTH), np.float32)
    groups[:, 0] = np.float32(E2M1_MAX) * s
    groups[:, 2:] = np.nextafter(signed, np.array([[0], [1], [2]], np.float32) * signed)
    return groups


def groups_at_scale_ties() -> Float32[np.ndarray, "n 16"]:
    """Return groups whose largest magnitude, in any of the 16 places, lies at or beside a tie of the scale."""
    scales = _scales()
    ties = np.float32(E2M1_MAX) * (scales[1:] + scales[:-1]) / 2
    amax = np.concatenate([ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, FLOAT32_MAX)])
    place = np.arange(amax.size)
    groups = np.outer(amax, np.linspace(-0.9, 0.9, GROUP_LENGTH, dtype=np.float32))
    groups[place, place % GROUP_LENGTH] = np.where(place % 3, amax, -amax)
    return groups


def extreme_groups() -> Float32[np.ndarray, "n 16"]:
    """Return groups of zeros, of numbers below every scale, and of numbers above every scale."""
    small = [0.0, -0.0, FLOAT32_TINY, -FLOAT32_TINY, 2.0**-126, 2.0**-12, 6 * 2.0**-10, 6.5 * 2.0**-9]
    large = [TWO_LEVEL_RANGE, 6.375 * 448, 1e6, -1e30, FLOAT32_MAX, -FLOAT32_MAX]
    groups = np.outer(np.array([*small, *large], np.float32), np.linspace(1, 0, GROUP_LENGTH, dtype=np.float32))
    groups[1::2, 3::2] *= np.float32(-1)
    return groups


class Shape(NamedTuple):
    """Of an attention case. `common_logit` is added to all logits of each KV head's first query head."""

    batch: int
    heads: int
    kv_heads: int
    tokens: int
    width: int
    lengths: tuple[int, ...]
    n_parts: int
    common_logit: float = 0.0


SHAPES: Final = [
    Shape(1, 1, 1, 1, 16, (1,), 1),
    Shape(2, 3, 1, 70, 48, (70, 0), 2),
    Shape(3, 8, 1, 100, 64, (1, 33, 97), 3),
    Shape(1, 6, 2, 300, 128, (299,), 4),
    Shape(2, 2, 2, 65, 256, (64, 65), 8),
    Shape(1, 9, 3, 40, 80, (37,), 1),
    Shape(1, 2, 2, 96, 32, (90,), 2, common_logit=120.0),
    Shape(1, 2, 2, 96, 32, (90,), 2, common_logit=-120.0),
]
"""Groups of 1, 3 and 8 query heads; lengths of 0, 1 and beside a multiple of 32; widths that are no power of two.

The last two have logits whose exponentials are infinite, and 0, in float32: exp(±120) is beyond its range."""


def attention_cases(rng: np.random.Generator) -> Iterator[AttentionCase]:
    """Yield a case for each of `SHAPES`."""
    return (attention_case(shape, rng) for shape in SHAPES)


def attention_case(shape: Shape, rng: np.random.Generator) -> AttentionCase:
    """Return a case of a shape; what the cache holds beyond a length is large, and no scale.

    Channels have sizes from 1/4 to 4, and the keys of every tenth token resemble a query, so weights are uneven: a
    maximum comes early in one sequence and late in another.
    """
    size = np.exp2(rng.uniform(-2, 2, shape.width))
    keys, values = rng.normal(size=(2, shape.batch, shape.kv_heads, shape.tokens, shape.width)) * size
    q = rng.normal(size=(shape.batch, shape.heads, shape.width)) / size
    first = q[:, :: shape.heads // shape.kv_heads, None, :]
    keys += (rng.random((*keys.shape[:3], 1)) < 0.1) * np.sign(first) * size
    keys += shape.common_logit * np.sqrt(shape.width) * first / (first**2).sum(axis=-1, keepdims=True)

    k_packed, k_scales = quantise_pack(keys.astype(np.float32))
    v_packed, v_scales = quantise_pack(values.astype(np.float32))
    for sequence, length in enumerate(shape.lengths):
        for array in (k_packed, k_scales, v_packed, v_scales):
            array[sequence, :, length:] = 0x7F
    lengths = np.array(shape.lengths, np.int32)
    return AttentionCase(q.astype(np.float32), k_packed, k_scales, v_packed, v_scales, lengths, shape.n_parts)
