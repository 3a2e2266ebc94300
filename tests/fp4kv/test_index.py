"""Which blocks an index picks: against loops over heads, tokens and blocks."""

import numpy as np
import pytest
from fp4kv import index_topk
from hypothesis import given
from hypothesis import strategies as st
from labkit.block_formats import round_trip_fp8
from labkit.given.lab02 import round_to_e4m3, ue8m0_exponent
from labkit.replay.hybrid_index import round_trip_index

# Few different whole numbers: their products are exact, and blocks often draw.
NUMBERS = st.integers(-3, 3).map(float)


def in_loops(q: list[list[float]], keys: list[list[float]], block_tokens: int, top_blocks: int) -> list[int]:
    """Score every token by hand, then take the best block that is left, the earliest of equals, again and again."""
    scores: dict[int, float] = {}
    for token, key in enumerate(keys):
        best = max(sum(a * b for a, b in zip(head, key, strict=True)) for head in q)
        block = token // block_tokens
        scores[block] = max(best, scores.get(block, best))
    picked = []
    for _ in range(top_blocks):
        left = [block for block in scores if block not in picked]
        picked.append(max(left, key=lambda block: (scores[block], -block)) if left else -1)
    return picked


@given(
    width=st.integers(1, 3),
    heads=st.integers(1, 3),
    tokens=st.integers(0, 12),
    block_tokens=st.integers(1, 5),
    top_blocks=st.integers(1, 6),
    data=st.data(),
)
def test_picks_are_those_of_the_loops(width, heads, tokens, block_tokens, top_blocks, data) -> None:
    q = [[data.draw(NUMBERS) for _ in range(width)] for _ in range(heads)]
    keys = [[data.draw(NUMBERS) for _ in range(width)] for _ in range(tokens)]
    found = index_topk(np.array(q), np.array(keys).reshape(tokens, width), block_tokens, top_blocks)
    assert found.shape == (top_blocks,) and np.issubdtype(found.dtype, np.integer)
    assert found.tolist() == in_loops(q, keys, block_tokens, top_blocks)


def test_of_equal_blocks_the_earlier_comes_first() -> None:
    assert index_topk(np.ones((1, 2)), np.ones((12, 2)), block_tokens=2, top_blocks=4).tolist() == [0, 1, 2, 3]
    keys = np.array([0.0, 5, 5, 0, 5, 5])[:, None]
    assert index_topk(np.ones((1, 1)), keys, block_tokens=2, top_blocks=3).tolist() == [0, 1, 2]


def test_a_short_last_block_is_a_block_and_missing_ones_are_minus_one() -> None:
    keys = np.array([1.0, 2, 3, 4, 9])[:, None]
    assert index_topk(np.ones((1, 1)), keys, block_tokens=2, top_blocks=5).tolist() == [2, 1, 0, -1, -1]
    assert index_topk(np.ones((1, 1)), keys[:0], block_tokens=2, top_blocks=2).tolist() == [-1, -1]


def test_a_block_is_as_good_as_its_best_token_and_a_token_as_its_best_head() -> None:
    """Not the mean: one token that fits one head brings its block in, however bad the rest is."""
    keys = np.array([[9.0, -9], [-9, -9], [1, 1], [1, 1]])
    assert index_topk(np.eye(2), keys, block_tokens=2, top_blocks=1).tolist() == [0]


def test_float32_is_scored_as_float64() -> None:
    """In float32 1 + 2^-30 would be 1, and the first block would win."""
    q, keys = np.ones((1, 2), np.float32), np.array([[1, 0], [1, 2**-30]], np.float32)
    assert index_topk(q, keys, block_tokens=1, top_blocks=1).tolist() == [1]


def test_keys_in_e2m1_and_in_fp8_pick_mostly_the_same_blocks(rng: np.random.Generator) -> None:
    """What the index is for: coarse keys find nearly the blocks of exact ones, finer ones more of them."""
    shared = {round_trip_index: 0, fp8: 0}
    for _ in range(20):
        q, keys = rng.normal(size=(2, 32)), rng.normal(size=(256, 32))
        exact = set(index_topk(q, keys, 8, 8).tolist())
        for round_trip in shared:
            shared[round_trip] += len(exact & set(index_topk(q, round_trip(keys), 8, 8).tolist()))
    # By chance 8 of 32 blocks share 2 of 8 with another 8: 40 of 160.
    assert 100 < shared[round_trip_index] < shared[fp8] <= 160, shared


def fp8(keys: np.ndarray) -> np.ndarray:
    return round_trip_fp8(keys.astype(np.float32), round_to_e4m3, ue8m0_exponent).astype(np.float64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_tokens": 0}, "block_tokens: expected at least 1, got 0"),
        ({"top_blocks": -1}, "top_blocks: expected at least 1, got -1"),
        ({"q": np.ones((0, 2))}, "q: expected at least one head, got none"),
        ({"q": np.array([[1.0, np.nan]])}, "q: expected finite numbers, got nan"),
        ({"index_keys": np.array([[1.0, -np.inf]])}, "index_keys: expected finite numbers, got -inf"),
    ],
)
def test_wrong_arguments_are_refused(change, message: str) -> None:
    arguments = {"q": np.ones((1, 2)), "index_keys": np.ones((4, 2)), "block_tokens": 2, "top_blocks": 1}
    with pytest.raises(ValueError, match=f"^{message}$"):
        index_topk(**{**arguments, **change})
