"""Checks of `bounded_replay`: what it feeds, what it rebuilds, and what it leaves alone.

Rows are right if they are those of the window, or those of the student's own `window_mask`.
"""

from typing import Any

import numpy as np
from labkit.expect import Mismatch, expect_raises, expect_values
from labkit.replay import Rows

from autograder.checks import Registry

from .networks import Text, as_cache, draw_text, expect_rows, own_mask
from .untouched import expect_untouched

checks = Registry()
check = checks.check

USES = ("window_mask",)
BOTH = {"keys": "keys", "values": "values"}


def _expect_replayed(
    student: Any, text: Text, replay_tokens: int, layers: list[int], fields: dict[str, str], given: str
) -> None:
    """Expect the rows of a bounded replay in some layers, from the last one back."""
    network = text.network(replay_tokens)
    got = as_cache(
        student.bounded_replay(text.lend(network), text.tokens, text.hit, replay_tokens, text.kept), len(network.kinds)
    )
    try:
        expect_rows(got, text.replayed(replay_tokens), layers, fields, given)
    except Mismatch:
        mask = own_mask(student, text, replay_tokens)
        if mask is None:
            raise
        expect_rows(got, text.replayed(replay_tokens, mask), layers, fields, given)


def _show(text: Text, replay_tokens: int) -> str:
    return f"W = {text.window}, {len(text.windows)} window layers, hit = {text.hit}, replay_tokens = {replay_tokens}"


@check(
    "bounded_replay-tokens",
    points=1,
    catches="feeds one token fewer than it is told, the whole prefix, or tokens from behind the hit",
    hint="tokens[max(0, hit - replay_tokens) : hit], each of them once",
    reveal=True,
    uses=USES,
)
def the_last_tokens_before_the_hit_are_fed(student: Any, cases: Any) -> None:
    """Exactly the last `replay_tokens` tokens before the hit are fed, each of them once."""
    for window, more in ((5, 0), (4, 3)):
        text = Text(cases, "WWW", window, int(cases.rng.integers(25, 40)))
        replay_tokens = window + more
        network = text.network(replay_tokens)
        student.bounded_replay(text.lend(network), text.tokens, text.hit, replay_tokens, text.kept)
        expected = text.tokens[text.hit - replay_tokens : text.hit]
        expect_values(network.fed, expected, given=_show(text, replay_tokens), any_width=True)


@check(
    "bounded_replay-rows",
    points=2,
    catches="starts elsewhere, or gives the exact rows and not those that the replayed tokens alone lead to",
    hint="layer by layer: compute the rows, keep the last of them, attend, and hand the output to the next layer",
    uses=USES,
)
def rows_come_from_the_replayed_tokens_alone(student: Any, cases: Any) -> None:
    """Every window layer has the rows to which the replayed tokens lead, with nothing before them."""
    for stack, window, more in (("WWW", 5, 0), ("WWWW", 4, 2), ("WW", 6, 0)):
        replay_tokens = window + more
        text = draw_text(cases, stack, window, int(cases.rng.integers(25, 40)), replay_tokens)
        _expect_replayed(student, text, replay_tokens, text.windows, BOTH, _show(text, replay_tokens))


@check(
    "bounded_replay-positions",
    points=1,
    catches="counts positions from the start of the replay, so that keys are turned by other angles",
    hint="a token keeps the position that it has in the text: np.arange(start, hit)",
    uses=USES,
)
def tokens_keep_their_positions(student: Any, cases: Any) -> None:
    """Keys are turned by the positions that the tokens have in the text."""
    for stack, window in (("WW", 5), ("WWW", 4)):
        text = draw_text(cases, stack, window, int(cases.rng.integers(25, 60)), window, turns=True)
        _expect_replayed(student, text, window, text.windows, {"keys": "keys"}, _show(text, window))


@check(
    "bounded_replay-count",
    points=1,
    catches="returns a row for each replayed token, or W rows",
    hint="the next token's window holds W - 1 rows of earlier tokens",
    uses=USES,
)
def a_window_layer_has_the_rows_that_the_next_token_reads(student: Any, cases: Any) -> None:
    """A window layer has W - 1 rows, or all where there are fewer."""
    for window, hit, more in ((5, 30, 3), (4, 20, 0), (6, 3, 0)):
        text = Text(cases, "WW", window, hit)
        replay_tokens = window + more
        network = text.network(replay_tokens)
        got = student.bounded_replay(text.lend(network), text.tokens, hit, replay_tokens, text.kept)
        counts = [rows.keys.shape[1] for rows in as_cache(got, len(network.kinds))]
        expect_values(counts, [text.n_rows] * len(counts), given=_show(text, replay_tokens), any_width=True)


@check(
    "bounded_replay-global_kept",
    points=1,
    catches="computes the rows of global layers anew, cuts them, or returns others",
    hint="global rows are exact and persistent: what the replayed tokens would write there is wrong",
    uses=USES,
)
def global_rows_stay_as_they_are(student: Any, cases: Any) -> None:
    """A global layer's rows are returned as they were given, and none is computed."""
    hit = int(cases.rng.integers(20, 40))
    for stack in ("WGW", "GWWG", "WGW"):
        window = int(cases.rng.integers(3, 7))
        text = Text(cases, stack, window, hit)
        network = text.network(window)
        got, arguments = student.bounded_replay.and_arguments(
            text.lend(network), text.tokens, text.hit, window, text.kept
        )
        cache = as_cache(got, len(network.kinds))
        for layer, kept in text.kept.items():
            expect_values(layer in network.computed, False, given=f"rows of global layer {layer} computed")
            for part, expected in zip(cache[layer], kept, strict=True):
                expect_values(part, expected, given=f"rows of global layer {layer}")
        expect_untouched(arguments[1], text.tokens, "tokens")
        expect_untouched(arguments[4], text.kept, "global_rows")


@check(
    "bounded_replay-global_read",
    points=1,
    catches="lets replayed tokens read nothing, or a window alone, in a global layer",
    hint="attend a global layer with all of global_rows[layer], and without a mask",
    uses=USES,
)
def replayed_tokens_read_the_global_rows(student: Any, cases: Any) -> None:
    """Replayed tokens read all global rows up to their own position, and window layers above hold what follows."""
    for stack, window in (("GW", 5), ("WGW", 4), ("WGGW", 5)):
        text = (
            draw_text(cases, stack, window, int(cases.rng.integers(20, 40)), window)
            if stack[0] == "W"
            else Text(cases, stack, window, int(cases.rng.integers(20, 40)))
        )
        _expect_replayed(student, text, window, text.windows, BOTH, _show(text, window))


@check(
    "bounded_replay-short",
    points=1,
    catches="begins before the first token, leaves an edge out, or takes rows[-0:] for no rows where W is 1",
    hint="start = max(0, hit - replay_tokens); of W - 1 = 0 rows, [-0:] keeps all",
    uses=USES,
)
def short_hits_are_cold_runs(student: Any, cases: Any) -> None:
    """A hit no longer than the replay is a cold run; a hit of 0 and a window of 1 leave no rows."""
    window = int(cases.rng.integers(4, 8))
    for hit, replay_tokens in ((window - 1, window), (window, window), (2, 3 * window), (1, window), (0, window)):
        text = Text(cases, "WWW", window, hit)
        _expect_replayed(student, text, replay_tokens, text.windows, BOTH, _show(text, replay_tokens))
    for replay_tokens in (0, 3):
        text = Text(cases, "WW", 1, 9)
        got = as_cache(
            student.bounded_replay(text.lend(text.network(replay_tokens)), text.tokens, 9, replay_tokens, {}), 2
        )
        counts = [rows.keys.shape[1] for rows in got]
        expect_values(counts, [0, 0], given=_show(text, replay_tokens), any_width=True)


@check(
    "bounded_replay-refuses",
    points=1,
    catches="replays too few tokens to rebuild the rows, a prefix longer than the text, or without its global rows",
    hint="raise ValueError for a hit outside 0 to T, too few replay_tokens, and not H rows of a global layer",
    uses=USES,
)
def what_cannot_be_rebuilt_is_refused(student: Any, cases: Any) -> None:
    """A hit that is no prefix of the text, too few replayed tokens, and other than H global rows are refused."""
    text = Text(cases, "WW", 5, 20)
    n_tokens = len(text.tokens)

    def replay(hit: int, replay_tokens: int) -> Any:
        return student.bounded_replay(text.lend(text.network(replay_tokens)), text.tokens, hit, replay_tokens, {})

    as_cache(replay(20, 4), 2)  # these are not
    as_cache(replay(3, 3), 2)
    as_cache(replay(n_tokens, 5), 2)
    for hit, replay_tokens in ((n_tokens + 1, 5), (-1, 5), (20, 3), (3, 2)):
        given = f"T = {n_tokens}, W = 5, hit = {hit}, replay_tokens = {replay_tokens}"
        expect_raises(ValueError, lambda h=hit, n=replay_tokens: replay(h, n), given=given)
    mixed = Text(cases, "WG", 4, 15)
    cut = Rows(*(array[:, :-1] for array in mixed.kept[1]))
    longer = Rows(*(np.concatenate([array, array[:, -1:]], axis=1) for array in mixed.kept[1]))
    for kept, what in (({}, "none"), ({1: cut}, "14"), ({1: longer}, "16")):
        network = mixed.network(4)
        call = lambda n=network, k=kept: student.bounded_replay(mixed.lend(n), mixed.tokens, 15, 4, k)  # noqa: E731
        expect_raises(ValueError, call, given=f"hit = 15, rows of global layer 1: {what}")
