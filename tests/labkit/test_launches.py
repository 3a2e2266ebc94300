"""Launches: grids cover their arrays, shared memory fits, and arrays that do not belong together are refused."""

from typing import Any

import numpy as np
import pytest
from labkit import launches
from labkit.launches import plan_decode_attention, plan_dequantise, plan_quantise_pack, tokens_per_part

BYTES = np.zeros((2, 2, 3, 8), np.uint8)
SCALES = np.zeros((2, 2, 3, 1), np.uint8)


def attention(**changed: Any) -> dict[str, Any]:
    """Return the arguments of a small attention, some of them changed."""
    cache = {"k_packed": BYTES, "k_scales": SCALES, "v_packed": BYTES, "v_scales": SCALES}
    return {"q": np.ones((2, 4, 16), np.float32)} | cache | {"lengths": np.array([3, 1], np.int32)} | changed


def wide(width: int, heads: int) -> dict[str, Any]:
    """Return the arguments of attention over one KV head."""
    cache, scales = np.zeros((1, 1, 3, width // 2), np.uint8), np.zeros((1, 1, 3, width // 16), np.uint8)
    q, lengths = np.ones((1, heads, width), np.float32), np.array([3], np.int32)
    return {"q": q, "k_packed": cache, "k_scales": scales, "v_packed": cache, "v_scales": scales, "lengths": lengths}


@pytest.mark.parametrize("n_groups", [1, 15, 16, 17, 4095])
def test_grid_has_a_thread_for_each_element_or_byte(n_groups: int) -> None:
    launch, (packed, scales) = plan_quantise_pack(np.zeros((n_groups, 16), np.float32))
    assert launch.grid[0] * launch.block[0] >= 16 * n_groups > (launch.grid[0] - 1) * launch.block[0]
    back, x = plan_dequantise(packed, scales)
    assert back.grid[0] * back.block[0] >= 8 * n_groups > (back.grid[0] - 1) * back.block[0]
    assert (packed.shape, scales.shape, x.shape) == ((n_groups, 8), (n_groups, 1), (n_groups, 16))


def test_a_long_array_gets_no_more_than_the_largest_grid() -> None:
    launch, _ = plan_quantise_pack(np.zeros((launches.MAX_BLOCKS * 17, 16), np.float32))
    assert launch.grid == (launches.MAX_BLOCKS,)


def test_outputs_are_filled_with_what_no_kernel_writes() -> None:
    _, (packed, scales) = plan_quantise_pack(np.zeros((2, 16), np.float32))
    assert np.all(packed == 255)
    assert np.all(scales == 255)
    assert np.isnan(plan_decode_attention(**attention())[1]).all()


@pytest.mark.parametrize(
    ("tokens", "n_parts", "expected"), [(0, 1, 32), (1, 9, 32), (64, 2, 32), (65, 2, 64), (96, 1, 96)]
)
def test_parts_are_whole_tiles(tokens: int, n_parts: int, expected: int) -> None:
    assert tokens_per_part(tokens, n_parts) == expected
    assert tokens_per_part(tokens, n_parts) * n_parts >= tokens


def test_no_part_begins_beyond_the_cache() -> None:
    for tokens in range(1, 200, 7):
        for n_parts in (1, 2, 3, 7):
            cache = np.zeros((1, 1, tokens, 8), np.uint8), np.zeros((1, 1, tokens, 1), np.uint8)
            q, lengths = np.ones((1, 1, 16), np.float32), np.array([tokens], np.int32)
            (launch, combine), _ = plan_decode_attention(q, *cache, *cache, lengths, n_parts=n_parts)
            assert 1 <= launch.grid[0] <= n_parts
            assert (launch.grid[0] - 1) * tokens_per_part(tokens, n_parts) < tokens
            assert combine.args[5] == launch.grid[0]


@pytest.mark.parametrize("width", [16, 48, 128, 256])
def test_largest_group_fits_into_shared_memory_and_no_larger_one_does(width: int) -> None:
    fits = [group for group in range(1, 40) if launches.shared_bytes(width, group) <= launches.SHARED_BYTES]
    limit = min(launches.MAX_GROUP, fits[-1])
    (launch, _), _ = plan_decode_attention(**wide(width, limit))
    assert launch.shared_mem <= launches.SHARED_BYTES
    assert launch.block == (32, limit)
    with pytest.raises(
        ValueError, match=f"at most {limit} query heads for each KV head at width {width}, got {limit + 1}"
    ):
        plan_decode_attention(**wide(width, limit + 1))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"q": np.ones((2, 3, 16), np.float32)},
            "q: expected a multiple of 2 query heads, one group for each KV head, got 3",
        ),
        ({"q": np.ones((2, 4, 32), np.float32)}, "q: expected the batch, 2, and width, 32, of q everywhere"),
        ({"q": np.ones((4, 16), np.float32)}, r"q, k_packed, v_packed: expected \(B, heads, D\) and twice"),
        ({"v_packed": BYTES[:, :, :2].copy(), "v_scales": SCALES[:, :, :2].copy()}, "q, k_packed, v_packed: expected"),
        ({"lengths": np.array([3], np.int32)}, "q: expected the batch, 2, and width, 16, of q everywhere"),
        (
            {"k_scales": SCALES[..., 0]},
            r"k_scales: expected one for each 8 bytes, shape \(2, 2, 3, 1\), got \(2, 2, 3\)",
        ),
        ({"k_packed": BYTES[..., :7].copy()}, "k_packed: expected a last axis that is a multiple of 8 bytes"),
        ({"n_parts": 0}, "n_parts: expected at least 1, got 0"),
    ],
)
def test_attention_refuses_what_does_not_belong_together(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_decode_attention(**attention(**changed))


@pytest.mark.parametrize("width", [0, 272])
def test_attention_refuses_widths_that_no_warp_holds(width: int) -> None:
    with pytest.raises(ValueError, match=f"q: expected a width of at most 256, got {width}"):
        plan_decode_attention(**wide(width, 1))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"q": np.ones((2, 4, 16))}, r"q: expected float32, got float64; call .astype\('float32'\)"),
        ({"lengths": np.array([3, 1])}, "lengths: expected int32, got int64"),
        ({"v_scales": SCALES.astype(np.int8)}, "v_scales: expected uint8, got int8"),
    ],
)
def test_attention_refuses_other_dtypes(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        plan_decode_attention(**attention(**changed))


def test_views_with_gaps_are_refused() -> None:
    with pytest.raises(ValueError, match=r"x: expected an array without gaps, got a view of shape \(2, 16\); copy it"):
        plan_quantise_pack(np.ones((2, 32), np.float32)[:, ::2])


def test_quantise_pack_refuses_widths_that_16_does_not_divide() -> None:
    for shape in ((), (8,), (2, 24)):
        with pytest.raises(ValueError, match="x: expected whole groups of 16 along the last axis, got shape"):
            plan_quantise_pack(np.ones(shape, np.float32))
