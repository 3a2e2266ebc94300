"""Checks of the section *derive*: slots of a ring, its length, and which rebuilt rows are exact."""

from typing import Any

import numpy as np
from labkit.expect import Mismatch, expect_raises, expect_values, plain_array
from labkit.replay import RingCache, Rows

from autograder.checks import Registry

checks = Registry()
check = checks.check

N_SHAPES = 6


def _window_and_length(cases: Any) -> tuple[int, int]:
    """Return a window of 4 or more, and a longer ring."""
    window = int(cases.rng.integers(4, 12))
    return window, window + int(cases.rng.integers(1, 8))


@check(
    "window_slots-last",
    points=1,
    catches="reads one position too many or too few, leaves out the token's own, or turns the order round",
    hint="the last W positions, the token's own among them, oldest first; each modulo the length",
    reveal=True,
)
def the_last_positions_are_read(student: Any, cases: Any) -> None:
    """The token reads the slots of the last W positions, its own among them, oldest first."""
    for window in (1, *map(int, cases.rng.integers(2, 10, N_SHAPES))):
        position = window + int(cases.rng.integers(0, 200))
        given = {"position": position, "start": 0, "window": window, "length": window}
        expected = np.arange(position - window + 1, position + 1) % window
        expect_values(student.window_slots(position, 0, window, window), expected, given=given, any_width=True)


@check(
    "window_slots-length",
    points=1,
    catches="takes the position modulo the window, counts slots from the start, or reads the whole ring",
    hint="a ring longer than the window has more slots to go round, and no more that are read",
)
def slots_go_round_the_ring(student: Any, cases: Any) -> None:
    """In a ring longer than the window, a position lies in slot position modulo length."""
    for _ in range(N_SHAPES):
        window, length = _window_and_length(cases)
        start = length * int(cases.rng.integers(1, 9)) + 1  # slots are not counted from the start
        position = start + 5 * length + int(cases.rng.integers(0, length))
        got = np.atleast_1d(plain_array(student.window_slots(position, start, window, length)))
        given = {"position": position, "start": start, "window": window, "length": length}
        if got.size > window + 1:  # one too many is another check
            raise Mismatch(f"{window} slots, as many as in a shorter ring", f"{got.size}", str(given))
        newest = np.arange(position - window + 3, position + 1) % length  # whatever the oldest is
        given |= {"the newest slots of": got.size}
        expect_values(got[max(0, got.size - newest.size) :], newest, given=given, any_width=True)


@check(
    "window_slots-start",
    points=1,
    catches="reads slots from before the start: another request's rows, or those of a replay that never were",
    hint="no position before start was written for this request, whatever its slot holds",
    reveal=True,
)
def nothing_before_the_start_is_read(student: Any, cases: Any) -> None:
    """A token less than W after the start reads from the start on, whether the start is 0 or later."""
    for rounds in (0, 3):
        window, length = _window_and_length(cases)
        start = rounds * window * length  # so that modulo the window and modulo the length are the same
        for after in range(window - 1):
            given = {"position": start + after, "start": start, "window": window, "length": length}
            got = student.window_slots(start + after, start, window, length)
            expect_values(got, np.arange(after + 1), given=given, any_width=True)


@check(
    "window_slots-refuses",
    points=1,
    catches="reads from a ring that cannot hold a window, or for a token before the request",
    hint="raise ValueError for window < 1, length < window and position < start",
)
def what_cannot_be_read_is_refused(student: Any, cases: Any) -> None:
    """A window below 1, a ring shorter than the window, and a position before the start are refused."""
    window, length = _window_and_length(cases)
    student.window_slots(window, window, window, length)  # these are not
    for given in (
        (length, 0, 0, length),
        (length, 0, -2, length),
        (99, 0, window, window - 1),
        (window - 1, window, window, length),
    ):
        expect_raises(
            ValueError, lambda g=given: student.window_slots(*g), given=f"position, start, window, length = {given}"
        )


@check(
    "ring_length-survives",
    points=1,
    catches="lets drafts that are rejected overwrite rows that are still needed",
    hint="after a rejection the next token still needs the W - 1 rows before it; count what was written since",
)
def the_window_survives_rejected_drafts(student: Any, cases: Any) -> None:
    """In a ring of that length every row is still there when it is read, after drafts were rejected."""
    for is_written_first in (False, True):
        for drafts in (0, 1, int(cases.rng.integers(2, 6))):
            window = int(cases.rng.integers(2, 9))
            given = {"window": window, "drafts": drafts, "is_written_first": is_written_first}
            length = _as_length(student.ring_length(window, drafts, is_written_first), given)
            lost = _first_lost(length, window, drafts, is_written_first)
            if lost is not None:
                raise Mismatch("a ring that holds what is read", f"{length} slots: {lost}", str(given))


def _first_lost(length: int, window: int, drafts: int, is_written_first: bool) -> str | None:
    """Serve a text, a token and drafts of the next in each step; return what was missing when it was read, if any."""
    ring = RingCache(length, 1, 1)

    def write(first: int, end: int) -> None:
        ring.write(np.arange(first, end), Rows(np.zeros((1, end - first, 1)), np.zeros((1, end - first, 1))))

    def attend(position: int) -> None:
        ring.read(np.arange(max(0, position - window + 1), position + is_written_first))

    def compute(first: int, end: int) -> None:
        if is_written_first:
            write(first, end)
        for own in range(first, end):
            attend(own)
            if not is_written_first:
                write(own, own + 1)

    try:
        for position in range(3 * window + drafts):
            compute(position, position + 1 + drafts)
    except LookupError as error:
        return str(error)
    return None


@check(
    "ring_length-fewest",
    points=1,
    catches="takes more slots than are needed: those of L windows, or of W tokens where the own row is not stored yet",
    hint="where a token is attended before it is written, its own row is no row of the ring",
)
def no_slot_is_spare(student: Any, cases: Any) -> None:
    """So many slots are enough, and one slot fewer would not do."""
    wide, some = (int(number) for number in cases.rng.integers((2, 1), (300, 9)))
    for window, drafts in ((128, 5), (wide, some), (wide, 0), (4, 4 + some)):
        for is_written_first in (False, True):
            given = {"window": window, "drafts": drafts, "is_written_first": is_written_first}
            got = _as_length(student.ring_length(window, drafts, is_written_first), given)
            fewest = window + drafts if is_written_first else window - 1 + drafts
            expect_values(got, fewest, given=given, any_width=True)


@check(
    "ring_length-refuses",
    points=1,
    catches="computes with a window or a number of drafts that cannot be",
    hint="raise ValueError for window < 1 and for drafts < 0",
)
def impossible_windows_are_refused(student: Any, cases: Any) -> None:
    """A window below 1 and fewer than no drafts are refused."""
    student.ring_length(1, 0, True)  # this one is not
    for given in ((0, 1, False), (-3, 1, True), (8, -1, False)):
        expect_raises(
            ValueError, lambda g=given: student.ring_length(*g), given=f"window, drafts, is_written_first = {given}"
        )


def _as_length(got: Any, given: Any) -> int:
    found = plain_array(got, given)
    if found.shape != () or found.dtype.kind not in "iu" or not 0 <= found <= 10**6:
        raise Mismatch("a whole number of slots", f"{got}", str(given))
    return max(1, int(found))


@check(
    "exact_rows-staircase",
    points=2,
    catches="counts W for W - 1 in each layer, counts layers from 1, or takes the rows from before the start for exact",
    hint="layer 0 is exact from the start; each layer more begins W - 1 tokens later, and W = 1 makes no step",
    reveal=True,
)
def each_layer_is_exact_from_a_step_later(student: Any, cases: Any) -> None:
    """In layer ℓ the rows are exact from ℓ(W - 1) tokens after the start of the replay on."""
    drawn = [(1, 5, 30, 7), (5, 1, 30, 3), (4, 8, 100, 28), (3, 4, 50, 40), (3, 4, 13, 12)]
    drawn += [tuple(int(cases.rng.integers(*ends)) for ends in ((2, 6), (2, 7), (60, 90), (1, 40))) for _ in range(4)]
    for layers, window, hit, n_replayed in drawn:
        given = {"layers": layers, "window": window, "hit": hit, "replay_tokens": n_replayed}
        expected = np.arange(n_replayed) >= (window - 1) * np.arange(layers)[:, None]
        expect_values(student.exact_rows(layers, window, hit, n_replayed), expected, given=given)


@check(
    "exact_rows-cold",
    points=1,
    catches="finds inexact rows in a replay from the first token on, a cold run, or replays more than there is",
    hint="where nothing lies before the start, nothing is missing; there are min(n, H) columns",
)
def a_replay_from_the_first_token_is_a_cold_run(student: Any, cases: Any) -> None:
    """Where as many tokens are replayed as there are, or more, every row is exact; a hit of 0 has no column."""
    layers, window = int(cases.rng.integers(2, 6)), int(cases.rng.integers(3, 9))
    hit = int(cases.rng.integers(2, 40))
    for hit_tokens, n_replayed in ((hit, hit), (hit, hit + window), (1, window), (0, 0), (0, window)):
        given = {"layers": layers, "window": window, "hit": hit_tokens, "replay_tokens": n_replayed}
        got = student.exact_rows(layers, window, hit_tokens, n_replayed)
        expect_values(got, np.ones((layers, hit_tokens), bool), given=given)


@check(
    "exact_rows-refuses",
    points=1,
    catches="draws a map of no layers, or of fewer than no tokens",
    hint="raise ValueError for layers or window below 1, and for hit or replay_tokens below 0",
)
def impossible_maps_are_refused(student: Any, cases: Any) -> None:
    """No layers, a window below 1, a negative hit and a negative replay are refused."""
    student.exact_rows(1, 1, 0, 0)  # these are not
    hit = int(cases.rng.integers(5, 50))
    for given in ((0, 3, hit, 2), (3, 0, hit, 2), (3, 3, -hit, 2), (3, 3, hit, -1)):
        expect_raises(
            ValueError, lambda g=given: student.exact_rows(*g), given=f"layers, window, hit, replay_tokens = {given}"
        )
