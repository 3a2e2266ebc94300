"""Tasks of `lab04_outliers`: one bad channel, and what can be done about it.

Letters: `x` keys or values of one head, after RoPE; `T` tokens, `D` head width, `s` scale.
"""

import numpy as np
from jaxtyping import Float, Float32, Float64, Int
from labkit.candidates import Parts, candidates
from labkit.formats import (
    E4M3_MAX,
    E4M3_MIN_SUBNORMAL,
    GROUP_LENGTH,
    Cached,
    Granularity,
    QuantisedE2M1,
)
from labkit.given.lab02 import dequantise, encode_e2m1, quantise_e2m1, quantise_int, round_to_e4m3
from labkit.given.lab03 import attend


def outlier_channels(x: Float[np.ndarray, "T D"], threshold: float) -> Int[np.ndarray, " m"]:
    """Return the channels that reach more than `threshold` times the median reach.

    A channel reaches as far as its largest magnitude over all tokens; the median is that of all channels' reaches,
    between the middle two where their number is even. The channels come in order.

    Raises
    ------
    ValueError
        If x is empty, or a value is NaN or infinite in float32 (the message names the index of the first).

    Example
    -------
    >>> outlier_channels(np.array([[1.0, -9.0, 2.0], [-2.0, 3.0, 1.0]]), threshold=4.0)
    array([1])
    """
    reach = np.abs(_finite_float32(x)).max(axis=0).astype(np.float64)
    return np.flatnonzero(reach > threshold * np.median(reach))


def _finite_float32(x: Float[np.ndarray, "T D"]) -> Float32[np.ndarray, "T D"]:
    """Return x as float32; refuse no values at all, and the first that is NaN or infinite there."""
    if x.size == 0:
        raise ValueError(f"x: expected at least one token and one channel, got shape {x.shape}")
    with np.errstate(over="ignore"):
        x = np.asarray(x, np.float32)
    if not np.isfinite(x).all():
        index = tuple(np.argwhere(~np.isfinite(x))[0].tolist())
        raise ValueError(f"x: expected finite float32 values, got {x[index]} at index {index}")
    return x


def quantise_with_granularity(
    x: Float32[np.ndarray, "T D"], bits: int, granularity: Granularity, symmetric: bool = True
) -> Cached:
    """Return x after integers with one scale per tensor, token, channel or 16-group.

    Codes, float32 scales and, if not symmetric, float32 minimums are those of `quantise_int`; a 16-group is 16
    neighbouring channels of one token. Each element stores `bits` and its share of the scale, and of the minimum where
    there is one, 32 bits each.

    Raises
    ------
    ValueError
        If x is empty or a value is NaN or infinite in float32 (the message names the index of the first), and as
        `quantise_int` does: other `bits` than 8, 6, 4, 3, 2, or a width that 16 does not divide with 16-groups.

    Example
    -------
    >>> quantise_with_granularity(np.eye(2, dtype=np.float32), 4, Granularity.TOKEN).bits_per_element
    20.0
    """
    x = _finite_float32(x)
    n_tokens, width = x.shape
    match Granularity(granularity):
        case Granularity.TENSOR:
            quantised = quantise_int(x.reshape(1, -1), bits, x.size, symmetric=symmetric)
        case Granularity.TOKEN:
            quantised = quantise_int(x, bits, width, symmetric=symmetric)
        case Granularity.CHANNEL:
            quantised = quantise_int(x, bits, n_tokens, axis=0, symmetric=symmetric)
        case Granularity.GROUP:
            quantised = quantise_int(x, bits, GROUP_LENGTH, symmetric=symmetric)

    metadata_bits = 32 * quantised.scales.size * (1 if symmetric else 2)
    return Cached(dequantise(quantised).reshape(x.shape), bits + metadata_bits / x.size)


def split_outliers(x: Float32[np.ndarray, "T D"], bits: int, threshold: float) -> Cached:
    """Return x after FP16 in its outlier channels and integers in the others.

    The outlier channels are those of `outlier_channels`; beyond ±65504, the largest FP16, they saturate. The others
    become symmetric integers, with one float32 scale per token that is made of them alone. Per token the others store
    `bits` each and their scale 32, the outliers 16 bits each; which channels they are costs one bit per channel, once.
    If every channel is an outlier there is no scale.

    Raises
    ------
    ValueError
        If x is empty, a value is NaN or infinite in float32 (the message names the index of the first), or `bits` is
        not one of 8, 6, 4, 3, 2.

    Example
    -------
    >>> decoded, bits_per_element = split_outliers(np.float32([[7, 3, -1, 100]]), bits=4, threshold=4.0)
    >>> decoded, bits_per_element
    (array([[  7.,   3.,  -1., 100.]], dtype=float32), 16.0)

    Source: the decomposition of LLM.int8() (Dettmers et al. 2022), with a threshold relative to the median channel.
    """
    x = _finite_float32(x)
    n_tokens, width = x.shape
    loud = outlier_channels(x, threshold)
    ordinary = np.setdiff1d(np.arange(width), loud)

    largest = np.finfo(np.float16).max
    decoded = np.clip(x, -largest, largest).astype(np.float16).astype(np.float32)
    token_bits = 16 * loud.size
    if ordinary.size:
        decoded[:, ordinary] = dequantise(quantise_int(x[:, ordinary], bits, ordinary.size))
        token_bits += bits * ordinary.size + 32
    return Cached(decoded, (token_bits * n_tokens + width) / x.size)


def rotate_hadamard(x: Float[np.ndarray, "... D"]) -> Float64[np.ndarray, "... D"]:
    """Return H x / √D along the last axis, H being Sylvester's Hadamard matrix.

    Element i of row c of H is -1 if c and i have an odd number of bits in common, else 1. Divided by √D it is
    orthonormal, and its own inverse. Everything is computed in float64.

    Raises
    ------
    ValueError
        If there is no last axis or D is not a power of two; 1 is one.

    Example
    -------
    >>> rotate_hadamard(np.array([4.0, 0.0, 0.0, 0.0]))
    array([2., 2., 2., 2.])
    """
    width = x.shape[-1] if x.ndim else 0
    if width < 1 or width & (width - 1):
        raise ValueError(f"x: expected a last axis whose length is a power of two, got shape {x.shape}")

    rotated = np.asarray(x, np.float64)
    half = 1
    while half < width:
        pairs = rotated.reshape(*x.shape[:-1], width // (2 * half), 2, half)
        low, high = pairs[..., 0, :], pairs[..., 1, :]
        rotated = np.stack([low + high, low - high], axis=-2).reshape(x.shape)
        half *= 2
    return np.asarray(rotated / np.sqrt(width))


def attend_rotated(
    q: Float32[np.ndarray, "n D"], keys: Float32[np.ndarray, "T D"], values: Float32[np.ndarray, "T E"]
) -> Float64[np.ndarray, "n E"]:
    """Return the attention output from a cache of rotated keys and values in E2M1.

    Keys and values are rotated, then quantised with one E4M3 scale per group of 16; the query is rotated as the keys
    are, and the output is rotated back.

    Raises
    ------
    ValueError
        As `rotate_hadamard` and `quantise_e2m1` do: a width must be a power of two, 16 at least.

    Example
    -------
    >>> token = np.float32([[100, *[1] * 15]])  # a single token has all the weight: the output is its value
    >>> attend_rotated(token, token, token)[0, :3].round(6)
    array([82.5,  2.5,  2.5])
    """
    cached = [dequantise(quantise_e2m1(rotate_hadamard(x))) for x in (keys, values)]
    return rotate_hadamard(attend(rotate_hadamard(q), *cached))


def centre_keys(
    keys: Float32[np.ndarray, "T D"], n_calibration: int
) -> tuple[Float32[np.ndarray, "T D"], Float32[np.ndarray, " D"]]:
    """Return the keys less their centre, the mean of the first tokens; and the centre.

    Causal: a token is centred by tokens before it only, so the first `n_calibration`, which make the centre, stay as
    they are. The mean is computed in float64 and rounded to float32, in which it is stored and subtracted.

    Raises
    ------
    ValueError
        If `n_calibration` is not from 1 to T.

    Example
    -------
    >>> centred, centre = centre_keys(np.float32([[1, 8], [3, 8], [5, 8]]), n_calibration=2)
    >>> centred
    array([[1., 8.],
           [3., 8.],
           [3., 0.]], dtype=float32)
    >>> centre
    array([2., 8.], dtype=float32)
    """
    if not 1 <= n_calibration <= len(keys):
        raise ValueError(f"n_calibration: expected a number of tokens from 1 to {len(keys)}, got {n_calibration}")
    centre = keys[:n_calibration].mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = np.array(keys, np.float32)
    centred[n_calibration:] -= centre
    return centred, centre


def scale_four_over_six(x: Float32[np.ndarray, "... n"]) -> QuantisedE2M1:
    """Return E2M1 codes under the better of two scales: amax at code 6, or at 4.

    For each group of 16 both scales are tried, E4M3(clamp(amax / 6, 2^-9, 448)) and E4M3(clamp(amax / 4, 2^-9, 448)),
    and the one with the smaller sum of squared errors is kept: the first where the sums are equal. x is read as
    float32, scales and quotients are float32, sums float64; there is no tensor scale.

    Raises
    ------
    ValueError
        As `quantise_e2m1` does.

    Example
    -------
    >>> quantised = scale_four_over_six(np.float32([4, 3, *[1] * 14]))  # a scale of 4/6 is rounded, and misses 3
    >>> quantised.scales, quantised.codes[:3]
    (array([1.], dtype=float32), array([6, 5, 2], dtype=uint8))

    Source: "four over six", arXiv 2512.02010, here under one E4M3 scale per group alone.
    """
    six = quantise_e2m1(x)
    x = np.asarray(x, np.float32)
    groups = x.reshape(-1, GROUP_LENGTH)
    amax = np.abs(groups).max(axis=-1)
    scales = round_to_e4m3(np.clip(amax / np.float32(4), E4M3_MIN_SUBNORMAL, E4M3_MAX))
    codes = encode_e2m1(groups / scales[:, None])
    four = QuantisedE2M1(codes.reshape(x.shape), scales.reshape(six.scales.shape), 1.0)

    is_better = _squared_errors(x, four) < _squared_errors(x, six)
    codes = np.where(np.repeat(is_better, GROUP_LENGTH, axis=-1), four.codes, six.codes)
    return QuantisedE2M1(codes, np.where(is_better, four.scales, six.scales), 1.0)


def _squared_errors(x: Float32[np.ndarray, "... n"], quantised: QuantisedE2M1) -> Float64[np.ndarray, "... n//16"]:
    """Return the sum of squared errors of each group."""
    error = np.asarray(x, np.float64) - dequantise(quantised)
    return np.asarray((error.reshape(*quantised.scales.shape, GROUP_LENGTH) ** 2).sum(axis=-1))


def channel_error(x: Float[np.ndarray, "T D"], decoded: Float[np.ndarray, "T D"]) -> Float64[np.ndarray, " D"]:
    """Return the relative error of each channel: ‖x_c - x̂_c‖ / ‖x_c‖ over its tokens.

    A channel of zeros has error 0 if it comes back as zeros, infinity if not. Everything is computed in float64.

    Raises
    ------
    ValueError
        If x and decoded differ in shape.

    Example
    -------
    >>> channel_error(np.array([[3.0, 0.0], [4.0, 0.0]]), np.array([[3.0, 0.0], [1.0, 0.0]]))
    array([0.6, 0. ])
    """
    if decoded.shape != x.shape:
        raise ValueError(f"decoded: expected the shape of x, {x.shape}, got shape {decoded.shape}")
    size = np.linalg.norm(np.asarray(x, np.float64), axis=0)
    error = np.linalg.norm(np.asarray(x, np.float64) - decoded, axis=0)
    return np.asarray(np.divide(error, size, out=np.where(error == 0, 0, np.inf), where=size > 0))


def choose_scheme(x: Float32[np.ndarray, "T D"], budget_bits: float) -> str:
    """Return the name of the best candidate that stores at most `budget_bits`.

    The best has the smallest mean channel error; of equals, the first. Bits are per element, metadata included; the
    candidates are those of `labkit.candidates`, in their order.

    Raises
    ------
    ValueError
        If no candidate fits the budget, or x is nothing that every candidate can store: a width must be a power of
        two, 32 at least.

    Example
    -------
    >>> choose_scheme(np.ones((32, 32), np.float32), budget_bits=4.25)
    'MXFP4'
    """
    parts = Parts(quantise_with_granularity, split_outliers, rotate_hadamard, centre_keys, scale_four_over_six)
    found = candidates(x, parts)
    fitting = {name: cached for name, cached in found.items() if cached.bits_per_element <= budget_bits}
    if not fitting:
        fewest = min(cached.bits_per_element for cached in found.values())
        raise ValueError(f"budget_bits: expected at least {fewest:g} bits per element, got {budget_bits:g}")
    return min(fitting, key=lambda name: float(channel_error(x, fitting[name].decoded).mean()))
