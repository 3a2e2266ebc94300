"""Caches whose quality collapsed: what was stored, what comes back, under which scales, and why.

    case = make_case(Cause.OUTLIER, rng)
    case.x, case.decoded, case.scales      what a diagnosis is given, each of shape (T, D)
    case.truth                             Diagnosis(cause, group, channel), None where a case has no such label
    restore(repaired, case.x.shape)        the tensor that a repaired cache stands for

Every cache holds E2M1 codes. A sound one has one scale E4M3(clamp(amax / 6, 2^-9, 448)) per token and group of 16
channels. Each case has one cause, in one group of channels unless said otherwise:

    STALE_AMAX    the scales of a group were frozen after the first tokens; later tokens are larger and clip
                  label: group
    WRONG_AXIS    in the whole tensor a scale belongs to 16 tokens of one channel, not to 16 channels of one token
                  no label
    OUTLIER       the scales are sound; one channel is 20 to 80 times as large as the others of its group
                  labels: group and channel, the channel counted from 0 in the whole tensor
    SCALE_FLOOR   the values of a group are so small that their scale would lie below the smallest there is, 2^-9
                  label: group

Every case also has what is unusual and harmless under sound scales: groups 10 times as loud or 100 times as quiet as
others, values that grow from token to token, scales that never change, tokens 20 to 40 times as loud as others,
tokens of zeros, channels 3 to 4.5 times as loud or 20 to 40 times as quiet as the others of their group.
"""

import enum
from typing import Any, Final, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int8

from labkit.expect import Mismatch, plain_array, show_number
from labkit.formats import E4M3_MAX, E4M3_MIN_SUBNORMAL, GROUP_LENGTH, QuantisedE2M1
from labkit.given.lab02 import decode_e2m1, dequantise, encode_e2m1, quantise_e2m1, round_to_e4m3

Array = Float32[np.ndarray, "T D"]

WIDTH: Final = 128
N_GROUPS: Final = WIDTH // GROUP_LENGTH
N_TOKENS: Final = (128, 192)
"""A case has as many tokens as one of these."""

N_CALM_TOKENS: Final = 16
"""The first tokens, among which none is loud and no group grows: what stale scales were made from."""

REPAIRED_ERROR: Final = 0.13
"""What a repaired cache may have as the mean over channels of ‖x_c - x̂_c‖ / ‖x_c‖.

Over 300 caches of each cause: 0.085 to 0.110 where all channels are made equally large before they are quantised, 0.105
to 0.116 where sound scales are made and nothing but the cause is repaired; 0.145 or more where an outlier or a group
at the floor is left to sound scales. The limit is the geometric mean of 0.116 and 0.145. Only the mean over *tokens*
shows a wrong axis: 16 tokens of a channel under one scale lose the quiet ones, which count little for the channel."""

LARGEST_NORMAL: Final = 4.0
"""Normal variates are cut here, so that no honest group is larger than 6 · 448, where scales end."""


class Cause(enum.Enum):
    """Why the quality of a cache collapsed."""

    STALE_AMAX = "the scales of a group were frozen before its values grew"
    WRONG_AXIS = "a scale belongs to 16 tokens of one channel"
    OUTLIER = "one channel sets the scales of its group"
    SCALE_FLOOR = "the values of a group are too small for the smallest scale"


class Diagnosis(NamedTuple):
    """The cause of a collapse, and the group and channel it is in, None where the cause is in no single one."""

    cause: Cause
    group: int | None
    channel: int | None


class Case(NamedTuple):
    """A tensor, what its cache gives back, the scale each element was decoded with, and what is wrong."""

    x: Float32[np.ndarray, "T D"]
    decoded: Float32[np.ndarray, "T D"]
    scales: Float32[np.ndarray, "T D"]
    truth: Diagnosis


class Repaired(NamedTuple):
    """A cache that stands for dequantise(quantised) · 2^exponents, one exponent per channel."""

    quantised: QuantisedE2M1
    exponents: Int8[np.ndarray, " D"]


def make_case(cause: Cause, rng: np.random.Generator) -> Case:
    """Return a cache that went wrong for the given cause, drawn from the generator.

    >>> make_case(Cause.OUTLIER, np.random.default_rng(0)).truth.cause.name
    'OUTLIER'
    """
    groups = rng.permutation(N_GROUPS).tolist()
    culprit = groups[0]
    columns = _columns(culprit)
    values, sizes = _honest_parts(groups, rng)
    channel = None

    if cause is Cause.OUTLIER:
        channel = columns.start + int(rng.integers(GROUP_LENGTH))
        times = _between(20.0, 80.0, rng)
        sizes[:, columns] *= _between(6.0, 12.0, rng) / times
        sizes[:, channel] *= times
    elif cause is Cause.SCALE_FLOOR:
        sizes[:, columns] = _between(0.07, 0.3, rng) * E4M3_MIN_SUBNORMAL
    elif cause is Cause.STALE_AMAX:
        sizes[:, columns] *= _growth(len(sizes), rng)

    x = (values * sizes).astype(np.float32)
    scales = _sound_scales(x)
    if cause is Cause.STALE_AMAX:
        n_seen = int(rng.integers(8, N_CALM_TOKENS + 1))
        scales[n_seen:, columns] = scales[:n_seen, columns].max()
    elif cause is Cause.WRONG_AXIS:
        scales = _sound_scales(x.T.copy()).T.copy()

    decoded = decode_e2m1(encode_e2m1(x / scales)) * scales
    group = None if cause is Cause.WRONG_AXIS else culprit
    return Case(x, decoded, scales, Diagnosis(cause, group, channel))


def _sound_scales(x: Array) -> Array:
    """Return, for each element, the scale that its token and group of 16 channels should have."""
    return np.repeat(quantise_e2m1(x).scales, GROUP_LENGTH, axis=-1)


def restore(repaired: Any, shape: tuple[int, int]) -> Float64[np.ndarray, "T D"]:
    """Return the tensor that a repaired cache stands for, if it is one that could be stored at the stated bits.

    Raises
    ------
    Mismatch
        If the parts are not E2M1 codes, one E4M3 scale of at least 0 per 16 of them, a tensor scale of 1 and one
        whole exponent from -128 to 127 per channel, for a tensor of the given shape.
    """
    if not isinstance(repaired, tuple) or len(repaired) != 2:
        raise Mismatch("Repaired(quantised, exponents)", f"a {type(repaired).__name__}")
    codes, scales = _stored_e2m1(repaired[0], shape)
    exponents = _plain(repaired[1], "whole exponents", "iu", shape[1:])
    if np.any((exponents < -128) | (exponents > 127)):
        raise Mismatch("exponents from -128 to 127", f"{exponents.min()} to {exponents.max()}")
    decoded = dequantise(QuantisedE2M1(codes, scales, 1.0))
    return np.ldexp(decoded.astype(np.float64), exponents.astype(np.int32))


def _stored_e2m1(quantised: Any, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return codes and scales, if they are such."""
    if not isinstance(quantised, tuple) or len(quantised) != 3:
        raise Mismatch("QuantisedE2M1(codes, scales, tensor_scale)", f"a {type(quantised).__name__}")
    codes = _plain(quantised[0], "codes of type uint8", "u", shape)
    if np.any(codes > 15):
        raise Mismatch("codes from 0 to 15", f"{codes.max()}")
    scales = _plain(quantised[1], "scales of type float32", "f", (shape[0], shape[1] // GROUP_LENGTH))
    is_none = round_to_e4m3(np.clip(np.nan_to_num(scales), 0, E4M3_MAX)) != scales
    if np.any(is_none):
        raise Mismatch("scales that are E4M3 values of at least 0", show_number(scales[is_none][0]))
    tensor_scale = _plain(quantised[2], "a tensor_scale", "iuf", ())
    if tensor_scale != 1:
        raise Mismatch("a tensor_scale of 1", show_number(tensor_scale))
    return codes.astype(np.uint8), scales.astype(np.float32)


def _plain(part: Any, name: str, kinds: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return a part as an array, if it is one of the given kinds and shape."""
    found = plain_array(part)
    if found.dtype.kind not in kinds or found.shape != shape:
        raise Mismatch(f"{name} of shape {shape}", f"{found.dtype} of shape {found.shape}")
    return found


def _honest_parts(groups: list[int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return normal variates and the size of each element: all that is unusual and harmless."""
    _, loud, small, growing, steady, quiet, mild, plain = groups
    n_tokens = int(rng.choice(N_TOKENS))
    values = np.clip(rng.standard_normal((n_tokens, WIDTH)), -LARGEST_NORMAL, LARGEST_NORMAL)
    sizes = np.ones((n_tokens, WIDTH))
    for group in range(N_GROUPS):
        sizes[:, _columns(group)] = _between(0.25, 1.0, rng)

    sizes[:, _columns(loud)] = _between(8.0, 12.0, rng)
    sizes[:, _columns(small)] = _between(4.0, 7.0, rng) * E4M3_MIN_SUBNORMAL
    sizes[:, _columns(growing)] *= _growth(n_tokens, rng)
    sizes[:, _one_of(quiet, rng)] /= _between(20.0, 40.0, rng)
    sizes[:, _one_of(mild, rng)] *= _between(3.0, 4.0, rng)
    channel = _one_of(steady, rng)
    sizes[:, channel] *= _between(4.1, 4.5, rng)
    values[:, channel] = rng.choice([-1, 1])

    tokens = rng.permuted(np.arange(N_CALM_TOKENS, n_tokens).reshape(-1, GROUP_LENGTH), axis=1)
    for group in (loud, quiet, mild, plain):
        loudness = _between(20.0, 40.0, rng, (*tokens[:, :2].shape, 1))
        sizes[tokens[:, :2], _columns(group)] *= loudness
    values[tokens[:, 2]] = 0
    return values, sizes


def _growth(n_tokens: int, rng: np.random.Generator) -> np.ndarray:
    """Return factors, one row per token, that grow to 6 to 10 once the calm tokens are over."""
    grown = np.concatenate([np.zeros(N_CALM_TOKENS), np.linspace(0, 1, n_tokens - N_CALM_TOKENS)])
    return np.asarray(_between(6.0, 10.0, rng) ** grown[:, None])


def _between(low: float, high: float, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> np.ndarray:
    """Return numbers whose logarithms are spread evenly."""
    return np.asarray(np.exp(rng.uniform(np.log(low), np.log(high), shape)))


def _columns(group: int) -> slice:
    return slice(group * GROUP_LENGTH, (group + 1) * GROUP_LENGTH)


def _one_of(group: int, rng: np.random.Generator) -> int:
    return group * GROUP_LENGTH + int(rng.integers(GROUP_LENGTH))
