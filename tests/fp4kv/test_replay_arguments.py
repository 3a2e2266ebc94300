"""What a replay cannot be given is refused, in words that say what was expected."""

import numpy as np
import pytest
from fp4kv import bounded_replay, exact_replay, exact_rows
from labkit.replay import LayerKind, Rows, ToyNetwork, swa_forward
from labkit.replay.network import part

TOKENS = np.arange(20)
HYBRID = ToyNetwork(window=4, kinds=(LayerKind.WINDOW, LayerKind.GLOBAL))
RUN = swa_forward(HYBRID, TOKENS)


def rows(count: int) -> dict[int, Rows]:
    return {1: part(RUN.rows[1], 0, count)}


@pytest.mark.parametrize(
    ("hit", "n", "given", "message"),
    [
        (21, 4, rows(20), "hit: expected 0 to 20, the tokens of the text, got 21"),
        (-1, 4, rows(0), "hit: expected 0 to 20, the tokens of the text, got -1"),
        (20, 2, rows(20), "replay_tokens: expected at least 3, the rows to rebuild, got 2"),
        (2, 1, rows(2), "replay_tokens: expected at least 2, the rows to rebuild, got 1"),
        (0, -1, rows(0), "replay_tokens: expected at least 0, the rows to rebuild, got -1"),
        (20, 4, {}, "global_rows: expected 20 rows of layer 1, got none"),
        (0, 4, {}, "global_rows: expected 0 rows of layer 1, got none"),
        (20, 4, rows(19), "global_rows: expected 20 rows of layer 1, got 19"),
        (12, 4, rows(20), "global_rows: expected 12 rows of layer 1, got 20"),
        (20, 4, {0: RUN.rows[0]}, "global_rows: expected 20 rows of layer 1, got none"),
    ],
)
def test_what_cannot_be_replayed_is_refused(hit: int, n: int, given: dict[int, Rows], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        bounded_replay(HYBRID, TOKENS, hit, n, given)
    if "replay_tokens" not in message:
        with pytest.raises(ValueError, match=f"^{message}$"):
            exact_replay(HYBRID, TOKENS, hit, given)


def test_rows_of_other_layers_are_left_alone() -> None:
    with_more = {**rows(20), 0: RUN.rows[0], 7: RUN.rows[0]}
    found, expected = (bounded_replay(HYBRID, TOKENS, 20, 4, given) for given in (with_more, rows(20)))
    assert all(np.array_equal(a.keys, b.keys) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("tokens", [TOKENS * 1.0, TOKENS > 3])
def test_tokens_that_are_no_integers_are_refused(tokens: np.ndarray) -> None:
    with pytest.raises(TypeError, match=f"^tokens: expected integers, got {tokens.dtype}$"):
        bounded_replay(HYBRID, tokens, 20, 4, rows(20))


@pytest.mark.parametrize("hit", [20.0, np.float64(20), 19.5])
def test_a_hit_that_is_no_integer_indexes_nothing(hit: float) -> None:
    with pytest.raises((IndexError, TypeError, ValueError)):
        bounded_replay(HYBRID, TOKENS, hit, 4, rows(20))  # type: ignore[arg-type]


@pytest.mark.parametrize("integer", [np.int64, np.int16])
def test_signed_integers_of_numpy_do(integer: type) -> None:
    cache = bounded_replay(HYBRID, TOKENS.astype(integer), integer(20), integer(4), rows(20))
    expected = bounded_replay(HYBRID, TOKENS, 20, 4, rows(20))
    assert all(np.array_equal(a.keys, b.keys) for a, b in zip(cache, expected, strict=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 3, 9, 4), "layers: expected at least 1, got 0"),
        ((2, 0, 9, 4), "window: expected at least 1, got 0"),
        ((2, 3, -1, 4), "hit: expected at least 0, got -1"),
        ((2, 3, 9, -4), "replay_tokens: expected at least 0, got -4"),
    ],
)
def test_a_staircase_that_cannot_be_is_refused(arguments: tuple[int, int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        exact_rows(*arguments)


def test_nothing_replayed_has_no_columns() -> None:
    assert exact_rows(2, 3, 0, 4).shape == exact_rows(2, 3, 9, 0).shape == (2, 0)
