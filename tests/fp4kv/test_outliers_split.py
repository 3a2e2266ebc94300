"""Outlier channels in FP16, the others in integers: against a composition as bitsandbytes makes it, and by the byte."""

import numpy as np
import pytest
import torch
from fp4kv import dequantise, outlier_channels, quantise_int, split_outliers
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labkit.expect import expect_close, expect_values
from labkit.formats import INTEGER_BITS

LESS_THAN_A_BIT = 1e-6  # a quotient and a product of float64 numbers below 10^5 are off by less
LARGEST_FP16 = 65504.0
MATRICES = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(1, 12)),
    elements=st.floats(-1e6, 1e6, width=32) | st.floats(-1, 1, width=32),
)


def keys_with_loud_channels(rng: np.random.Generator, loud: list[int], shape: tuple[int, int] = (48, 64)) -> np.ndarray:
    """Gaussian values, a few channels of them 20 times as large."""
    x = rng.normal(size=shape)
    x[:, loud] *= 20
    return x.astype(np.float32)


def mixed_matmul(x: torch.Tensor, weight: torch.Tensor, threshold: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Multiply as LLM.int8() does, and return the int8 codes too.

    Columns in which a magnitude is above the threshold are taken out and multiplied in FP16 with FP16 weights; the
    others become int8 with one scale per row of x and one per column of the weight, are multiplied as whole numbers,
    and scaled back. Written after bitsandbytes' `MatMul8bitLt`, whose FP16 product adds up in float32.
    """
    is_loud = (x.abs() > threshold).any(dim=0)
    quiet, quiet_weight = x[:, ~is_loud], weight[~is_loud]
    row_scales = quiet.abs().amax(dim=1, keepdim=True) / 127
    column_scales = quiet_weight.abs().amax(dim=0, keepdim=True) / 127
    codes = torch.round(quiet / row_scales).to(torch.int8)
    weight_codes = torch.round(quiet_weight / column_scales).to(torch.int8)
    whole = (codes.to(torch.int32) @ weight_codes.to(torch.int32)).double()
    scaled = whole * row_scales.double() * column_scales.double()
    loud = x[:, is_loud].half().double() @ weight[is_loud].half().double()
    return scaled + loud, codes


@pytest.mark.parametrize("loud", [[5], [0, 17, 63], []])
def test_products_are_those_of_mixed_int8_and_fp16_matrices(loud: list[int], rng: np.random.Generator) -> None:
    x = keys_with_loud_channels(rng, loud)
    weight = rng.normal(size=(64, 32)).astype(np.float32)
    relative = 4.0
    reach = np.abs(x).max(axis=0)
    threshold = relative * float(np.median(reach))
    expected, codes = mixed_matmul(torch.tensor(x), torch.tensor(weight), threshold)

    quiet = np.setdiff1d(np.arange(64), loud)
    ours = split_outliers(x, 8, relative).decoded
    expect_values(outlier_channels(x, relative), np.array(loud, np.intp), given="the channels that were made loud")
    expect_values(quantise_int(x[:, quiet], 8, quiet.size).codes, codes.numpy().astype(np.int16), given=x)

    # the weight as the composition rounds it: int8 by column, FP16 where x is loud
    rounded = weight.astype(np.float16).astype(np.float64)
    columns = np.abs(weight[quiet]).max(axis=0) / np.float32(127)
    rounded[quiet] = np.round(weight[quiet] / columns) * columns.astype(np.float64)
    # each decoded value is rounded to float32 once; the rest is float64
    tolerance = 2.0**-24 * (np.abs(ours.astype(np.float64)) @ np.abs(rounded)) * (1 + 1e-6)
    expect_close(ours.astype(np.float64) @ rounded, expected.numpy(), tolerance, given=x)


def stored_bytes(x: np.ndarray, bits: int, threshold: float) -> int:
    """The bytes of everything that must be kept to decode x."""
    loud = outlier_channels(x, threshold)
    quiet = np.delete(x, loud, axis=1)
    mask = np.packbits(np.isin(np.arange(x.shape[1]), loud))
    kept = mask.nbytes + x[:, loud].astype(np.float16).nbytes
    if quiet.size:
        quantised = quantise_int(quiet, bits, quiet.shape[1])
        unsigned = (quantised.codes + 2 ** (bits - 1) - 1).astype(np.uint8)
        packed = np.packbits(np.unpackbits(unsigned.reshape(-1, 1), axis=-1)[:, 8 - bits :])
        kept += packed.nbytes + quantised.scales.nbytes
    return kept


@pytest.mark.parametrize("bits", INTEGER_BITS)
@pytest.mark.parametrize("loud", [[], [3], [3, 8, 30], list(range(15))])
def test_every_byte_is_counted(bits: int, loud: list[int], rng: np.random.Generator) -> None:
    x = keys_with_loud_channels(rng, loud, (48, 32))  # a multiple of 8 everywhere: no byte is half full
    got = split_outliers(x, bits, 4.0)
    assert list(outlier_channels(x, 4.0)) == loud
    assert abs(got.bits_per_element * x.size - 8 * stored_bytes(x, bits, 4.0)) < LESS_THAN_A_BIT


@pytest.mark.parametrize("bits", INTEGER_BITS)
def test_without_an_ordinary_channel_there_is_no_scale(bits: int) -> None:
    x = np.float32([[1, 2, 3, 4], [4, 3, 2, 1.0009765625]])
    got = split_outliers(x, bits, 0.5)
    expect_values(got.decoded, x, given=x)
    assert got.bits_per_element == 16 + 4 / 8


def test_without_an_outlier_it_is_one_scale_per_token(rng: np.random.Generator) -> None:
    x = rng.normal(size=(8, 32)).astype(np.float32)
    got = split_outliers(x, 4, 100.0)
    expect_values(got.decoded, dequantise(quantise_int(x, 4, 32)), given=x)
    assert got.bits_per_element == 4 + 32 / 32 + 1 / 8


def test_a_channel_that_reaches_exactly_the_threshold_stays() -> None:
    x = np.float32([[1, 1, 1, 4]])
    expect_values(split_outliers(x, 2, 4.0).decoded, np.float32([[0, 0, 0, 4]]), given=x)
    x = np.nextafter(x, np.float32([[1, 1, 1, 9]]))
    expect_values(split_outliers(x, 2, 4.0).decoded, np.float32([[1, 1, 1, 4]]), given=x)


def test_outliers_do_not_set_the_scale_of_the_others() -> None:
    x = np.float32([[7, 3, -1, 100]])
    expect_values(split_outliers(x, 4, 4.0).decoded, x, given=x)
    expect_values(dequantise(quantise_int(x, 4, 4))[0, :3], np.float32([0, 0, 0]), given="unsplit")


@pytest.mark.parametrize("loud", [65504.0, 65519.0, 65520.0, 1e6, 3.4e38])
def test_what_fp16_cannot_hold_saturates(loud: float) -> None:
    x = np.float32([[1, -1, 1, loud, -loud]])
    decoded = split_outliers(x, 8, 3.0).decoded
    expect_values(decoded[0, 3:], np.float32([LARGEST_FP16, -LARGEST_FP16]), given=x)


def test_what_is_below_the_smallest_fp16_vanishes_and_ties_go_to_even() -> None:
    smallest = 2.0**-24
    x = np.float32([[1, 1, 1, 9], [1, 1, 1, smallest / 2], [1, 1, 1, smallest], [1, 1, 1, 1 + 2.0**-11]])
    expect_values(split_outliers(x, 8, 3.0).decoded[1:, 3], np.float32([0, smallest, 1]), given=x)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("channel", [1, 3])
def test_a_value_that_is_not_finite_is_named_by_token_and_channel(bad: float, channel: int) -> None:
    x = np.float32([[1, 1, 1, 90], [1, 1, 1, 90]])
    x[1, channel] = bad
    with pytest.raises(ValueError, match=rf"x: expected finite float32 values, got .* at index \(1, {channel}\)"):
        split_outliers(x, 4, 3.0)


def test_nothing_and_other_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="x: expected at least one token and one channel, got shape"):
        split_outliers(np.zeros((0, 4), np.float32), 4, 3.0)
    with pytest.raises(ValueError, match="bits: expected one of"):
        split_outliers(np.ones((2, 4), np.float32), 5, 3.0)


def test_the_input_is_left_alone(rng: np.random.Generator) -> None:
    x = keys_with_loud_channels(rng, [2, 7])
    before = x.copy()
    split_outliers(x, 4, 4.0)
    expect_values(x, before, given="the input after the call")


@given(x=MATRICES, bits=st.sampled_from(INTEGER_BITS), threshold=st.floats(0.5, 20))
def test_outliers_are_off_by_fp16_and_others_by_half_a_step_of_the_others(
    x: np.ndarray, bits: int, threshold: float
) -> None:
    loud = outlier_channels(x, threshold)
    decoded = split_outliers(x, bits, threshold).decoded.astype(np.float64)
    error = np.abs(decoded - x)
    held = np.clip(x[:, loud].astype(np.float64), -LARGEST_FP16, LARGEST_FP16)
    # half a unit of 11 significant bits, or of the smallest number
    assert (np.abs(decoded[:, loud] - held) <= np.maximum(np.abs(held) * 2.0**-11, 2.0**-25)).all(), x
    quiet = np.delete(np.abs(x).astype(np.float64), loud, axis=1)
    amax = quiet.max(axis=1, initial=0, keepdims=True)
    levels = 2 ** (bits - 1) - 1
    # s and the product are rounded to float32; s is at least 2^-149
    half_step = amax / levels / 2 * (1 + 2.0**-22) + amax * 2.0**-23 + levels * 2.0**-149
    assert (np.delete(error, loud, axis=1) <= half_step).all(), x


@given(x=MATRICES, bits=st.sampled_from(INTEGER_BITS))
def test_a_higher_threshold_never_stores_more(x: np.ndarray, bits: int) -> None:
    # an outlier costs 16 - bits more per token; beyond the median there is always an ordinary one, and so a scale
    stored = [split_outliers(x, bits, threshold).bits_per_element for threshold in (1.5, 3.0, 10.0)]
    assert stored == sorted(stored, reverse=True), x
