"""Checks of `window_mask`: how many keys, none from later, and by position. Each hides the slips of the others."""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import expect_raises, expect_values

from autograder.checks import Registry

from .untouched import expect_untouched

checks = Registry()
check = checks.check


def _expect_mask(student: Any, queries: np.ndarray, keys: np.ndarray, window: int) -> None:
    given = {"query_positions": queries, "key_positions": keys, "window": window}
    got, after = student.window_mask.and_arguments(queries, keys, window)
    expect_values(got, fp4kv.window_mask(queries, keys, window), given=given)
    expect_untouched(after, [queries, keys, window], "query_positions or key_positions")


@check(
    "window_mask-width",
    points=1,
    catches="shows W + 1 keys, the token's own and W others, or W - 1",
    hint="W counts the token's own key: ages 0 to W - 1",
    reveal=True,
)
def a_query_sees_as_many_keys_as_the_window(student: Any, cases: Any) -> None:
    """A query sees the last W keys, its own among them."""
    _expect_mask(student, np.array([10]), np.arange(11), 4)
    for window in (1, 2, int(cases.rng.integers(3, 20))):
        last = window + int(cases.rng.integers(1, 20))
        _expect_mask(student, np.array([last]), np.arange(last + 1), window)


@check(
    "window_mask-causal",
    points=1,
    catches="shows keys of later tokens",
    hint="a key whose position is larger than the query's is not there yet",
)
def no_query_sees_a_later_key(student: Any, cases: Any) -> None:
    """No query sees the key of a later token."""
    for _ in range(3):
        n = int(cases.rng.integers(3, 20))
        _expect_mask(student, np.arange(n), np.arange(n), 2 * n)  # a window in which everything earlier is seen


@check(
    "window_mask-positions",
    points=1,
    catches="counts rows and columns of the mask, not positions in the text",
    hint="the ages are query_positions[:, None] minus key_positions, wherever these begin and however they are ordered",
)
def positions_count_wherever_they_begin(student: Any, cases: Any) -> None:
    """Positions may begin anywhere and come in any order, as they lie in a ring."""
    for number in cases.rng.integers(1, 8, 2).repeat(3):  # one window for three orders: a mask is not to be remembered
        first = 10 * int(cases.rng.integers(1, 50))
        keys = first + 10 * cases.rng.permutation(8)  # ages are multiples of 10, so far from 10 j + 5
        queries = first + 70 + 10 * cases.rng.permutation(3)
        window = 10 * int(number) + 5
        _expect_mask(student, queries, keys, window)


@check(
    "window_mask-refuses",
    points=1,
    catches="takes a window in which a token does not see itself",
    hint="raise ValueError for window < 1",
)
def a_window_of_nothing_is_refused(student: Any, cases: Any) -> None:
    """A window below 1 is refused."""
    positions = np.arange(3)
    student.window_mask(positions, positions, 1)  # this one is not
    for window in (0, -int(cases.rng.integers(1, 9))):
        expect_raises(
            ValueError, lambda w=window: student.window_mask(positions, positions, w), given=f"window {window}"
        )
