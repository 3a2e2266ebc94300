"""The coarse index: its formats against ml_dtypes, its picks against a search one query at a time."""

import ml_dtypes
import numpy as np
import pytest
from labkit.replay.hybrid_index import BLOCK_TOKENS, CoarseIndex, IndexFormat, round_trip_index

E2M1_LARGEST = 6.0


def nearest_in_mx(keys):
    """Return keys after E2M1 under the smallest power of two that clips nothing, found by trying one after another."""
    decoded = np.empty_like(keys)
    for row, result in zip(keys.reshape(-1, 32), decoded.reshape(-1, 32), strict=True):
        exponent = next(e for e in range(-126, 128) if np.abs(row).max() <= E2M1_LARGEST * 2.0**e)
        scaled = (row / 2.0**exponent).astype(np.float32)
        result[:] = scaled.astype(ml_dtypes.float4_e2m1fn).astype(np.float64) * 2.0**exponent
    return decoded


def test_index_keys_are_e2m1_under_the_smallest_scale_that_does_not_clip(rng):
    keys = np.float64(np.float32(rng.normal(size=(2, 50, 32)) * 2.0 ** rng.integers(-9, 9, (2, 50, 1))))
    assert np.array_equal(round_trip_index(keys), nearest_in_mx(keys))


@pytest.mark.parametrize("amax", [6.0, 6.0 * (1 + 2.0**-20), 3.0, 5.999, 0.75, 0.0])
def test_scale_changes_where_the_largest_key_leaves_the_format(amax):
    keys = np.linspace(-1, 1, 32)[None] * amax
    assert np.array_equal(round_trip_index(keys), nearest_in_mx(keys))


def picks_one_by_one(index, queries, keys, positions):
    """Return the picks of each query of each head, by sorting the blocks that end before its own."""
    copies = index.format.round_trip(keys)
    n_blocks = -(-keys.shape[1] // BLOCK_TOKENS)
    chosen = np.zeros((len(keys), len(positions), n_blocks), bool)
    for head, number in np.ndindex(chosen.shape[:2]):
        own = positions[number] // BLOCK_TOKENS
        score = {}
        for block in range(own):
            tokens = copies[head, block * BLOCK_TOKENS : (block + 1) * BLOCK_TOKENS]
            score[block] = max(float(q @ k) for q in queries[head, :, number] for k in tokens)
        best = sorted(score, key=lambda block: (-score[block], block))[: index.blocks]
        chosen[head, number, [*best, own]] = True
    return chosen


@pytest.mark.parametrize("kind", IndexFormat)
@pytest.mark.parametrize("blocks", [0, 1, 3, 50])
def test_picks_are_the_best_blocks_and_the_own_one(rng, kind, blocks):
    queries, keys = rng.normal(size=(2, 2, 5, 32)), rng.normal(size=(2, 83, 32))
    positions = np.array([0, 7, 8, 41, 82])
    index = CoarseIndex(kind, blocks)
    assert np.array_equal(index.picks(queries, keys, positions), picks_one_by_one(index, queries, keys, positions))


def test_earlier_block_wins_among_equals(rng):
    keys = np.tile(rng.normal(size=(1, 8, 32)), (1, 5, 1))
    queries = rng.integers(-8, 9, size=(1, 2, 1, 32)).astype(np.float64)  # products and sums of E2M1 values are exact
    picks = CoarseIndex(IndexFormat.E2M1, 2).picks(queries, keys, np.array([39]))
    assert picks[0, 0].tolist() == [True, True, False, False, True]


def test_index_does_not_see_the_keys_of_later_tokens(rng):
    queries, keys = rng.normal(size=(2, 2, 3, 32)), rng.normal(size=(2, 64, 32))
    positions, changed = np.array([20, 25, 30]), keys.copy()
    changed[:, 24:] *= -5
    index = CoarseIndex(IndexFormat.E2M1, 2)
    before, after = (index.picks(queries, some, positions) for some in (keys, changed))
    assert np.array_equal(before[:, 0], after[:, 0])
    assert not before[:, :, 4:].any() and not after[:, :, 4:].any()
