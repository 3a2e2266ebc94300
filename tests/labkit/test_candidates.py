"""The candidates: every stored bit counted, made of the student's parts, causal where they say so."""

import re
from itertools import pairwise

import fp4kv
import numpy as np
import pytest
from labkit.candidates import (
    N_CALIBRATION,
    SPLIT_BITS,
    THRESHOLD,
    Parts,
    Reads,
    candidates,
    what_it_reads,
)
from labkit.expect import expect_values
from labkit.formats import INTEGER_BITS, Cached, QuantisedE2M1, ScaleRule
from labkit.tensors import load_keys, load_values

PARTS = Parts(
    fp4kv.quantise_with_granularity,
    fp4kv.split_outliers,
    fp4kv.rotate_hadamard,
    fp4kv.centre_keys,
    fp4kv.scale_four_over_six,
)
N_TOKENS, WIDTH = 100, 32  # three blocks of 32 tokens and 4 more; six of 16 and 4 more
LARGEST_ERRORS = {"FP16": 2.0**-11, "FP8": 2.0**-4, "E2M1": 0.25, "MXFP4": 0.25}
"""Of normal numbers: half a unit of 11 and of 4 significant bits; of E2M1 1/4 at 2, and what is flushed besides."""
LESS_THAN_A_BIT = 1e-6  # a quotient and a product of float64 numbers below 10^5 are off by less


def keys(rng: np.random.Generator, n_tokens: int = N_TOKENS) -> np.ndarray:
    """Gaussian keys with a mean and two loud channels."""
    x = rng.normal(size=(n_tokens, WIDTH)) + rng.normal(size=WIDTH)
    x[:, [3, 20]] *= 12
    return x.astype(np.float32)


def e2m1_bytes(x: np.ndarray) -> int:
    """Packed codes and one byte per E4M3 scale."""
    quantised = fp4kv.quantise_e2m1(x)
    return fp4kv.pack_nibbles(quantised.codes).nbytes + quantised.scales.size


def integer_bits(codes: np.ndarray, bits: int) -> int:
    """Bits of codes that use no more than 2^bits values."""
    assert np.ptp(codes) < 2**bits
    return bits * codes.size


def stored_bits(x: np.ndarray) -> dict[str, int]:
    """What must be kept to decode each candidate, counted from the arrays themselves."""
    fp16, centre = 8 * x.astype(np.float16).nbytes, fp4kv.centre_keys(x, N_CALIBRATION)[1]
    blocks16, blocks32 = len(x) // 16 * 16, len(x) // 32 * 32
    tail16, tail32 = (8 * x[n:].astype(np.float16).nbytes for n in (blocks16, blocks32))
    exponents = fp4kv.ue8m0_exponent(np.abs(x.reshape(-1, 32)).max(axis=-1))
    e2m1 = 8 * e2m1_bytes(x)
    found = {
        "FP16": fp16,
        "FP8, UE8M0 per 32": 8 * x.size + 8 * exponents.size,
        "MXFP4": 8 * fp4kv.pack_nibbles(fp4kv.encode_e2m1(x)).nbytes + 8 * exponents.size,
        "E2M1, E4M3 per 16": e2m1,
        "E2M1, E4M3 per 16, float32 per tensor": e2m1 + 32,
        "E2M1 per channel, blocks of 16": 8 * e2m1_bytes(x[:blocks16].T) + tail16,
        "E2M1, rotated": 8 * e2m1_bytes(fp4kv.rotate_hadamard(x)),
        "E2M1, four over six": e2m1,
        "E2M1, centred": e2m1 + 8 * centre.nbytes,
        "E2M1, centred, four over six": e2m1 + 8 * centre.nbytes,
    }
    for bits in INTEGER_BITS:
        for name, rows in {"tensor": x.reshape(1, -1), "token": x, "channel": x.T, "group": x.reshape(-1, 16)}.items():
            quantised = fp4kv.quantise_int(rows, bits, rows.shape[1])
            total = integer_bits(quantised.codes, bits) + 8 * quantised.scales.nbytes
            found[f"INT{bits}, one scale per {name}"] = total
        affine = fp4kv.quantise_int(x[:blocks32], bits, 32, axis=0, symmetric=False)
        metadata = affine.scales.astype(np.float16).nbytes + affine.minimums.astype(np.float16).nbytes
        found[f"INT{bits} per channel, affine blocks of 32"] = integer_bits(affine.codes, bits) + 8 * metadata + tail32
    loud = fp4kv.outlier_channels(x, THRESHOLD)
    quiet = np.delete(x, loud, axis=1)
    for bits in SPLIT_BITS:
        quantised = fp4kv.quantise_int(quiet, bits, quiet.shape[1])
        kept = 8 * (np.packbits(np.zeros(WIDTH, bool)).nbytes + x[:, loud].astype(np.float16).nbytes)
        kept += integer_bits(quantised.codes, bits) + 8 * quantised.scales.nbytes
        found[f"INT{bits} per token, outliers in FP16"] = kept
    return found


def test_every_stored_bit_is_counted(rng: np.random.Generator) -> None:
    for n_tokens in (32, N_TOKENS, 160):
        x = keys(rng, n_tokens)
        counted, found = stored_bits(x), candidates(x, PARTS)
        assert set(counted) == set(found)
        for name, cached in found.items():
            assert abs(cached.bits_per_element * x.size - counted[name]) < LESS_THAN_A_BIT, (name, n_tokens)


def test_every_candidate_gives_back_the_shape_in_float32_and_something_like_it(rng: np.random.Generator) -> None:
    for x in (keys(rng), keys(rng, 1), load_keys(5)[:, 0], load_values(5)[:, 0]):
        for name, cached in candidates(x, PARTS).items():
            assert isinstance(cached, Cached) and cached.decoded.dtype == np.float32, name
            assert cached.decoded.shape == x.shape and np.isfinite(cached.decoded).all(), name
            assert np.abs(cached.decoded - x).max() <= np.abs(x).max(), name
            limit = LARGEST_ERRORS.get(name.split(",")[0].split()[0])
            assert limit is None or np.linalg.norm(cached.decoded - x) <= limit * np.linalg.norm(x), name


def differs_from(n_changed: int, x: np.ndarray, name: str) -> np.ndarray:
    """Which tokens come back otherwise when those from `n_changed` on are larger, in one channel most."""
    other = x.copy()
    other[n_changed:] *= 100
    other[n_changed:, 7] *= 100
    before, after = (candidates(tensor, PARTS)[name].decoded for tensor in (x, other))
    return (before != after).any(axis=1)


def test_what_it_reads_is_what_it_depends_on(rng: np.random.Generator) -> None:
    x = keys(rng)
    for name in candidates(x, PARTS):
        reads = what_it_reads(name)
        at_a_block, within_a_block = differs_from(64, x, name), differs_from(50, x, name)
        if reads in (Reads.TOKEN, Reads.EARLIER):
            assert not within_a_block[:50].any(), name
        if reads is Reads.BLOCK:
            assert not at_a_block[:64].any() and within_a_block[48:50].all(), name
        if reads is Reads.ALL:
            assert at_a_block[:64].any(), name
        later = differs_from_earlier(x, name)
        assert later == (reads in (Reads.EARLIER, Reads.ALL)), name


def differs_from_earlier(x: np.ndarray, name: str) -> bool:
    """Whether the last token of a block comes back otherwise when one channel of the first 32 tokens is another."""
    x = x / np.abs(x).max(axis=0)
    x[95] = np.sqrt(np.linspace(0.97, 0.1, WIDTH, dtype=np.float32))  # with something in it for the coarsest scale
    other = x.copy()
    other[:N_CALIBRATION, 0] *= 100
    before, after = (candidates(tensor, PARTS)[name].decoded for tensor in (x, other))
    return bool((before[95] != after[95]).any())


def test_names_that_are_none_read_the_token_alone() -> None:
    assert what_it_reads("a sibling") is Reads.TOKEN


def test_each_candidate_is_made_of_the_parts_it_is_named_after(rng: np.random.Generator) -> None:
    x = keys(rng)
    honest = candidates(x, PARTS)
    zeros = Cached(np.zeros_like(x), 1.0)
    none = QuantisedE2M1(np.zeros(x.shape, np.uint8), np.ones((N_TOKENS, WIDTH // 16), np.float32), 1.0)
    lame = {
        "quantise_with_granularity": (lambda *_: zeros, r"one scale per"),
        "split_outliers": (lambda *_: zeros, r"outliers in FP16"),
        "rotate_hadamard": (np.zeros_like, r"rotated"),
        "centre_keys": (lambda keys, n: (np.zeros_like(keys), keys[0]), r"centred"),
        "scale_four_over_six": (lambda _: none, r"four over six"),
    }
    for part, (function, pattern) in lame.items():
        found = candidates(x, PARTS._replace(**{part: function}))
        changed = {name for name in found if not np.array_equal(found[name].decoded, honest[name].decoded)}
        assert changed == {name for name in honest if re.search(pattern, name)}, part


def test_two_levels_are_those_of_the_reference(rng: np.random.Generator) -> None:
    x = keys(rng)
    expected = fp4kv.dequantise(fp4kv.quantise_e2m1(x, ScaleRule.TENSOR_AND_GROUP))
    found = candidates(x, PARTS)
    expect_values(found["E2M1, E4M3 per 16, float32 per tensor"].decoded, expected, given=x)
    along_tokens = fp4kv.dequantise(fp4kv.quantise_e2m1(x[:96].T)).T
    expect_values(found["E2M1 per channel, blocks of 16"].decoded[:96], along_tokens, given=x)


def test_tokens_of_an_incomplete_block_stay_in_fp16(rng: np.random.Generator) -> None:
    x = keys(rng)
    found = candidates(x, PARTS)
    for name, cached in found.items():
        if what_it_reads(name) is Reads.BLOCK:
            expect_values(cached.decoded[96:], x[96:].astype(np.float16).astype(np.float32), given=name)


def test_affine_blocks_are_off_by_half_a_step_and_what_fp16_adds(rng: np.random.Generator) -> None:
    x = keys(rng)
    blocks = x[:96].reshape(3, 32, WIDTH).astype(np.float64)
    span, size = np.ptp(blocks, axis=1, keepdims=True), np.abs(blocks).max(axis=1, keepdims=True)
    for bits in INTEGER_BITS:
        decoded = candidates(x, PARTS)[f"INT{bits} per channel, affine blocks of 32"].decoded[:96]
        # minimum and scale are rounded to 11 significant bits, the scale times at most 2^bits - 1
        bound = span / (2**bits - 1) / 2 + (size + span) * 2.0**-11
        assert (np.abs(decoded.reshape(blocks.shape) - blocks) <= bound).all(), bits


def test_a_loud_channel_is_confined_spread_or_avoided(rng: np.random.Generator) -> None:
    x = rng.normal(size=(512, 64)).astype(np.float32)
    x[:, 5] *= 50
    errors = {name: fp4kv.channel_error(x, c.decoded).mean() for name, c in candidates(x, PARTS).items()}
    ranking = ["E2M1 per channel, blocks of 16", "INT4, one scale per channel", "E2M1, E4M3 per 16", "E2M1, rotated"]
    assert all(errors[one] * 1.2 < errors[other] for one, other in pairwise(ranking)), errors


@pytest.mark.parametrize("width", [16, 48, 24])
def test_widths_that_not_every_candidate_can_store_are_refused(width: int) -> None:
    with pytest.raises(ValueError, match="x: expected a last axis"):
        candidates(np.ones((32, width), np.float32), PARTS)


def test_the_input_is_left_alone(rng: np.random.Generator) -> None:
    x = keys(rng)
    before = x.copy()
    candidates(x, PARTS)
    expect_values(x, before, given="the input after the call")
