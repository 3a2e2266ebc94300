"""The ring: it keeps the last positions written, knows which, and refuses others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.replay import Position, RingCache, Rows


def rows_of(positions: list[int]) -> Rows:
    """Rows whose numbers say which position they are of: keys plain, values negative."""
    keys = np.array(positions, float).reshape(1, -1, 1) * np.ones((2, 1, 3))
    return Rows(keys, -keys[:, :, :2])


def ring(length: int) -> RingCache:
    return RingCache(length, kv_heads=2, width=3, value_width=2)


@given(length=st.integers(1, 6), writes=st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=6))
def test_a_slot_holds_what_was_last_written_to_it(length: int, writes: list[list[int]]) -> None:
    cache, held = ring(length), dict.fromkeys(range(length))
    for positions in writes:
        cache.write(np.array(positions, int), rows_of(positions))
        held.update({position % length: position for position in positions})
    for position in range(31):
        if held[position % length] == position:
            found, expected = cache.read(np.array([position])), rows_of([position])
            assert np.array_equal(found.keys, expected.keys) and np.array_equal(found.values, expected.values)
        else:
            with pytest.raises(LookupError, match=f"got {position}, whose slot holds"):
                cache.read(np.array([position]))


def test_rows_come_in_the_order_of_the_positions_asked_for() -> None:
    cache = ring(4)
    cache.write(np.arange(6), rows_of(list(range(6))))
    assert cache.read(np.array([5, 2, 4])).keys[0, :, 0].tolist() == [5, 2, 4]
    assert cache.read(np.array([], int)).keys.shape == (2, 0, 3)
    assert cache.slot_of(Position(6)) == 2


def test_what_was_read_stays_as_it_was() -> None:
    cache = ring(2)
    cache.write(np.array([0, 1]), rows_of([0, 1]))
    found = cache.read(np.array([0, 1]))
    cache.write(np.array([2]), rows_of([2]))
    assert found.keys[0, :, 0].tolist() == [0, 1]


def test_a_cleared_ring_holds_nothing() -> None:
    cache = ring(2)
    cache.write(np.array([0, 1]), rows_of([5, 6]))
    cache.clear()
    assert not cache.keys.any() and not cache.values.any()
    with pytest.raises(LookupError, match="expected rows that the ring holds, got 1, whose slot holds nothing"):
        cache.read(np.array([1]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ring(0), "length: expected at least 1 slot, got 0"),
        (
            lambda: ring(3).read(np.array([0, -1])),
            "positions: expected at least 0, got -1; no token is before the first",
        ),
        (lambda: ring(3).write(np.array([-2]), rows_of([-2])), "positions: expected at least 0, got -2; no token is"),
        (lambda: ring(3).write(np.array([1, 2]), rows_of([1])), "rows: expected one for each of 2 positions, got 1"),
        (lambda: ring(3).write(np.array([1]), rows_of([1, 2])), "rows: expected one for each of 1 positions, got 2"),
    ],
)
def test_wrong_arguments_are_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        call()
