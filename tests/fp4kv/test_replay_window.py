"""Which rows a token of a window layer reads, in which slots they lie, and how many slots a ring needs."""

import itertools

import numpy as np
import pytest
from fp4kv import attend, ring_length, window_mask, window_slots
from hypothesis import given
from hypothesis import strategies as st
from labkit.replay import RingCache, Rows

WINDOWS, DRAFTS, STEPS = range(1, 7), range(5), 60
ORDERS = pytest.mark.parametrize("is_written_first", [False, True])


@given(
    window=st.integers(1, 9),
    queries=st.lists(st.integers(0, 40), max_size=8),
    keys=st.lists(st.integers(0, 40), max_size=8),
)
def test_a_query_sees_the_last_w_tokens_its_own_among_them(window: int, queries: list[int], keys: list[int]) -> None:
    found = window_mask(np.array(queries, int), np.array(keys, int), window)
    expected = [[key in range(query - window + 1, query + 1) for key in keys] for query in queries]
    assert found.dtype == bool
    assert np.array_equal(found, np.array(expected, bool).reshape(len(queries), len(keys)))


def test_a_window_of_four_at_equal_logits_is_the_mean_of_four_values() -> None:
    positions = np.arange(12)
    seen = window_mask(np.array([10]), positions, window=4)
    values = np.repeat(positions[:, None], 16, axis=1).astype(np.float64)
    assert np.allclose(attend(np.zeros((1, 16)), np.zeros((12, 16)), values, seen), 8.5, rtol=1e-15, atol=0)


def test_a_token_after_a_replay_reads_nothing_below_its_start() -> None:
    assert window_slots(position=103, start=100, window=8, length=200).tolist() == [100, 101, 102, 103]
    assert window_slots(position=107, start=100, window=8, length=200).tolist() == list(range(100, 108))
    assert window_slots(position=108, start=100, window=8, length=200).tolist() == list(range(101, 109))


@given(window=st.integers(1, 9), spare=st.integers(0, 5), start=st.integers(0, 30), after=st.integers(0, 30))
def test_slots_are_those_of_the_last_w_positions_from_the_start(
    window: int, spare: int, start: int, after: int
) -> None:
    position, length = start + after, window + spare
    expected = [p % length for p in range(start, position + 1) if p > position - window]
    assert window_slots(position, start, window, length).tolist() == expected


def serve(length: int, window: int, is_written_first: bool, steps: list[tuple[int, int]]) -> bool:
    """Run an engine of (drafts, of them accepted) per step; return whether every token read the rows it should.

    A row's number is unique. The text is kept in a list beside the ring, from which nothing is ever lost.
    """
    ring = RingCache(length, kv_heads=1, width=1)
    numbers = itertools.count()
    text: list[int] = []
    for drafts, accepted in steps:
        fed = [next(numbers) for _ in range(1 + drafts)]
        if is_written_first:
            write(ring, len(text), fed)
        for count, own in enumerate(fed):
            position = len(text) + count
            before = (text + fed[:count])[max(0, position - window + 1) :]
            positions = np.arange(position - len(before), position + is_written_first)
            if read(ring, positions) != before + [own] * is_written_first:
                return False
            if not is_written_first:
                write(ring, position, [own])
        text += fed[: 1 + accepted]
    return True


def write(ring: RingCache, position: int, numbers: list[int]) -> None:
    rows = np.array(numbers, float).reshape(1, -1, 1)
    ring.write(np.arange(position, position + len(numbers)), Rows(rows, rows))


def read(ring: RingCache, positions: np.ndarray) -> list[int]:
    """Return the row numbers in the slots, whatever they hold; the ring must object exactly where one is another's."""
    slots = positions % ring.length
    held = ring.keys[0, slots, 0].astype(int).tolist()
    if np.array_equal(ring.positions[slots], positions):
        assert ring.read(positions).keys[0, :, 0].tolist() == held
        return held
    with pytest.raises(LookupError, match="positions: expected rows that the ring holds"):
        ring.read(positions)
    return held


def random_steps(rng: np.random.Generator, drafts: int) -> list[tuple[int, int]]:
    fed = rng.integers(0, drafts + 1, STEPS)
    return [(int(n), int(rng.integers(0, n + 1))) for n in fed]


@ORDERS
def test_a_ring_of_the_derived_length_or_longer_loses_no_row(is_written_first: bool, rng: np.random.Generator) -> None:
    for window, drafts, spare in itertools.product(WINDOWS, DRAFTS, (0, 1, 7)):
        length = ring_length(window, drafts, is_written_first) + spare
        if length:
            assert serve(length, window, is_written_first, random_steps(rng, drafts)), (window, drafts, length)


@ORDERS
def test_a_ring_one_slot_shorter_loses_a_row_once_all_drafts_are_rejected(is_written_first: bool) -> None:
    for window, drafts in itertools.product(WINDOWS, DRAFTS):
        length = ring_length(window, drafts, is_written_first) - 1
        if length < 1 or (window == 1 and not is_written_first):
            continue  # a window of 1 reads no row but its own
        steps = [(drafts, 0)] * (length + window + 2)
        assert not serve(length, window, is_written_first, steps), (window, drafts, length)


def test_a_window_of_one_needs_only_its_own_row() -> None:
    assert ring_length(window=1, drafts=0, is_written_first=False) == 0
    assert ring_length(window=1, drafts=0, is_written_first=True) == 1


def test_slots_that_are_read_are_those_that_the_engine_wrote() -> None:
    """The text as a ring holds it, read through `window_slots`, drafts written first and all rejected."""
    window, drafts, start = 4, 3, 17
    ring = np.full(ring_length(window, drafts, is_written_first=True), -1)
    for position in range(start, start + 30):
        ring[(position + np.arange(1 + drafts)) % len(ring)] = position + np.arange(1 + drafts)
        read = ring[window_slots(position, start, window, len(ring))]
        assert read.tolist() == [p for p in range(position - window + 1, position + 1) if p >= start]


def test_rows_of_another_request_lie_below_the_start_alone() -> None:
    """A slot that was not written again holds the row of whoever was there before."""
    window, ring = 8, RingCache(length=8, kv_heads=1, width=1)
    write(ring, 0, [-1] * 97)  # positions 0 to 96 of another request: the slots of 97 to 99 are theirs too
    write(ring, 100, [100, 101, 102, 103])

    slots = window_slots(position=103, start=100, window=window, length=8)
    assert ring.keys[0, slots, 0].tolist() == [100, 101, 102, 103]
    assert (ring.keys[0, [p % 8 for p in range(96, 100)], 0] == -1).all()
    with pytest.raises(LookupError, match=r"got 97, whose slot holds position 89"):
        ring.read(np.arange(97, 104))
    assert ring.read(np.array([96])).keys[0, 0, 0] == -1  # the position is the same: only the start tells
    ring.clear()
    with pytest.raises(LookupError, match="got 96, whose slot holds nothing"):
        ring.read(np.array([96]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: window_mask(np.arange(2), np.arange(2), 0), "window: expected at least 1 token, got 0"),
        (lambda: ring_length(0, 2, True), "window: expected at least 1 token, got 0"),
        (lambda: ring_length(4, -1, True), "drafts: expected at least 0 tokens, got -1"),
        (lambda: window_slots(3, 0, 0, 4), "window: expected at least 1 token, got 0"),
        (lambda: window_slots(3, 0, 4, 3), "length: expected a slot for each of 4 tokens, got 3"),
        (lambda: window_slots(3, 4, 4, 4), "position: expected 4 or later, where the request starts, got 3"),
    ],
)
def test_wrong_arguments_are_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        call()
