"""The kernels' NumPy references against ml_dtypes, lab 2's functions and PyTorch."""

import inspect
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from fp4kv import dequantise, pack_nibbles, quantise_e2m1
from fp4kv.kernel_cases import AttentionCase, adversarial_groups, attention_cases
from fp4kv.kernels import decode_attention, dequantise_packed, quantise_pack
from labkit.expect import expect_bytes, expect_close, expect_values
from labkit.formats import E2M1_MAX, E4M3_MAX, E4M3_MIN_SUBNORMAL
from torch.nn.functional import scaled_dot_product_attention

# float64 against float64: sizes below 100 after at most 256 products, exponentials and sums of 300: 1,000 roundings.
ROUNDING = 100 * 1000 * 2.0**-53


def halves(packed: np.ndarray) -> np.ndarray:
    """Return the elements of packed bytes, by ml_dtypes."""
    codes = np.stack([packed & 0b1111, packed >> 4], axis=-1).view(ml_dtypes.float4_e2m1fn)
    return codes.astype(np.float32).reshape(*packed.shape[:-1], -1)


def cases() -> list[AttentionCase]:
    return list(attention_cases(np.random.default_rng(5)))


def test_adversarial_groups_have_every_scale_and_every_tie() -> None:
    groups = adversarial_groups()
    _, scales = quantise_pack(groups)
    assert set(scales.ravel().tolist()) == set(range(1, 127))
    quotients = np.abs(groups) / scales.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    for tie in (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0):
        assert np.count_nonzero(quotients == tie) >= 2 * 126, tie


def test_adversarial_groups_convict_a_product_with_the_reciprocal() -> None:
    groups = adversarial_groups()
    packed, scales = quantise_pack(groups)
    reciprocals = np.float32(1) / scales.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    codes = (groups * reciprocals).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    assert np.any(pack_nibbles(codes) != packed)
    amax = np.abs(groups).max(axis=-1)
    other = np.clip(amax * np.float32(1 / 6), E4M3_MIN_SUBNORMAL, E4M3_MAX).astype(ml_dtypes.float8_e4m3fn)
    assert np.any(other.view(np.uint8) != scales[:, 0])


def test_quantise_pack_agrees_with_ml_dtypes_bit_for_bit(rng: np.random.Generator) -> None:
    spread = rng.normal(size=(1000, 64)) * np.exp2(rng.uniform(-12, 12, (1000, 1)))
    for x in (adversarial_groups(), spread.astype(np.float32)):
        groups = x.reshape(-1, 16)
        amax = np.abs(groups).max(axis=-1, keepdims=True)
        wanted = np.clip(amax / np.float32(E2M1_MAX), E4M3_MIN_SUBNORMAL, E4M3_MAX).astype(ml_dtypes.float8_e4m3fn)
        steps = wanted.astype(np.float32)
        codes = np.clip(groups / steps, -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
        packed, scales = quantise_pack(x)
        expect_bytes(scales.reshape(-1, 1), wanted.view(np.uint8), given=groups)
        expect_bytes(packed.reshape(-1, 8), codes[:, 0::2] | codes[:, 1::2] << 4, given=groups)


def test_quantise_pack_is_lab_2s_quantise_in_bytes(rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 5, 48)).astype(np.float32)
    packed, scales = quantise_pack(x)
    quantised = quantise_e2m1(x)
    expect_bytes(packed, pack_nibbles(quantised.codes), given=x)
    expect_values(scales.view(ml_dtypes.float8_e4m3fn).astype(np.float32), quantised.scales, given=x)
    expect_values(dequantise_packed(packed, scales), dequantise(quantised), given=x)


def test_every_byte_and_every_scale_decode_as_ml_dtypes_says() -> None:
    packed = np.tile(np.arange(256, dtype=np.uint8), (127, 1))
    scales = np.broadcast_to(np.arange(127, dtype=np.uint8)[:, None], (127, 32)).copy()
    steps = scales.view(ml_dtypes.float8_e4m3fn).astype(np.float32).repeat(16, axis=-1)
    expect_values(dequantise_packed(packed, scales), halves(packed) * steps, given=packed, signed_zeros=True)


@pytest.mark.parametrize("case", cases(), ids=lambda case: str(case.q.shape))
def test_attention_is_torchs_over_the_tokens_that_count(case: AttentionCase) -> None:
    output = decode_attention(*case[:-1])
    for sequence, length in enumerate(case.lengths):
        keys, values = (
            torch.from_numpy(dequantise_packed(packed[sequence, :, :length], scales[sequence, :, :length])).double()
            for packed, scales in (case[1:3], case[3:5])
        )
        q = torch.from_numpy(case.q[sequence, :, None]).double()
        expected = torch.zeros_like(q)
        if length:
            expected = scaled_dot_product_attention(q, keys, values, enable_gqa=True)
        expect_close(output[sequence], expected[:, 0].numpy(), ROUNDING, given=(sequence, int(length)))


def test_a_group_of_query_heads_shares_the_kv_head_of_its_place(rng: np.random.Generator) -> None:
    q, (keys, values) = rng.normal(size=(1, 6, 32)), rng.normal(size=(2, 1, 2, 9, 32)).astype(np.float32)
    cache = (*quantise_pack(keys), *quantise_pack(values))
    lengths = np.array([9], np.int32)
    output = decode_attention(q.astype(np.float32), *cache, lengths)
    for head in range(6):
        alone = decode_attention(
            q[:, [head]].astype(np.float32), *(array[:, [head // 3]] for array in cache), lengths=lengths
        )
        expect_close(output[:, [head]], alone, ROUNDING, given=head)


def test_cases_have_no_scale_beyond_a_length() -> None:
    for case in cases():
        for sequence, length in enumerate(case.lengths):
            assert np.all(case.k_scales[sequence, :, length:] == 0x7F)


def test_a_sequence_without_tokens_has_the_output_zero() -> None:
    case = next(case for case in cases() if 0 in case.lengths)
    output = decode_attention(*case[:-1])
    assert np.array_equal(np.abs(output).sum(axis=(1, 2)) == 0, case.lengths == 0)


def refused(**changed: Any) -> tuple[Any, ...]:
    """Return arguments of a small attention, some of them changed."""
    cache = {"k_packed": np.zeros((2, 2, 3, 8), np.uint8), "k_scales": np.zeros((2, 2, 3, 1), np.uint8)}
    cache |= {"v_packed": cache["k_packed"], "v_scales": cache["k_scales"]}
    arguments = {"q": np.ones((2, 4, 16), np.float32)} | cache | {"lengths": np.array([3, 1])} | changed
    return tuple(arguments.values())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"q": np.ones((2, 3, 16), np.float32)},
            "q: expected a multiple of 2 query heads, one group per KV head, got 3",
        ),
        ({"q": np.ones((2, 4, 12), np.float32)}, "q: expected a width that is a multiple of 16, got 12"),
        ({"lengths": np.array([3, 4])}, "lengths: expected 0 to 3, got 4 for sequence 1"),
        ({"lengths": np.array([-1, 4])}, "lengths: expected 0 to 3, got -1 for sequence 0"),
        ({"k_scales": np.full((2, 2, 3, 1), 0x80, np.uint8)}, r"scales: expected bytes up to 0x7e \(448\), got 0x80"),
    ],
)
def test_attention_refuses_what_does_not_belong_together(changed: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inspect.unwrap(decode_attention)(*refused(**changed))


def test_quantise_pack_names_what_it_refuses() -> None:
    x = np.ones((2, 16), np.float32)
    x[1, 3] = np.nan
    with pytest.raises(ValueError, match=r"x: expected finite float32 values, got nan at index \(1, 3\)"):
        quantise_pack(x)
    with pytest.raises(ValueError, match=r"x: expected a last axis that is a multiple of 16, got shape \(2, 8\)"):
        quantise_pack(np.ones((2, 8), np.float32))


def test_dequantise_packed_names_the_scale_that_is_none() -> None:
    scales = np.zeros((2, 1), np.uint8)
    scales[1] = 0x7F
    with pytest.raises(ValueError, match=r"scales: expected bytes up to 0x7e \(448\), got 0x7f at \(1, 0\)"):
        dequantise_packed(np.zeros((2, 8), np.uint8), scales)


def test_dequantise_packed_wants_a_scale_for_each_group() -> None:
    with pytest.raises(ValueError, match="scales: expected one per group of codes"):
        inspect.unwrap(dequantise_packed)(np.zeros((2, 8), np.uint8), np.zeros((2, 2), np.uint8))
