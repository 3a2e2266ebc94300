"""Checks of `exact_replay`: the rows of a cold run, from the fewest tokens.

Rows are right if they are those of a cold run, or what the student's own `bounded_replay` gives of that many tokens.
"""

from typing import Any

from labkit.expect import Mismatch, Raised, expect_values
from labkit.replay import Rows

from autograder.checks import Registry

from .networks import Text, as_cache, draw_text, expect_rows, is_near

checks = Registry()
check = checks.check

USES = ("bounded_replay", "window_mask")
BOTH = {"keys": "keys", "values": "values"}


def _needed(text: Text) -> int:
    """Return the fewest tokens from which the rows can be rebuilt exactly."""
    return min(text.hit, len(text.windows) * (text.window - 1))


def _show(text: Text) -> str:
    layers = f"{len(text.windows)} window layers, {len(text.kept)} global"
    return f"W = {text.window}, {layers}, hit = {text.hit}"


def _draw(cases: Any, stack: str, window: int) -> Text:
    """Return a text in which one token fewer shows in the top window layer."""
    hit = int(cases.rng.integers(len(stack) * window + 5, len(stack) * window + 30))
    return draw_text(cases, stack, window, hit, stack.count("W") * (window - 1) - 1, turns=True)


@check(
    "exact_replay-tokens",
    points=2,
    catches="replays L·W tokens, W tokens, or counts the global layers too",
    hint="the staircase: how many columns are exact in every line, and how many must be?",
    uses=USES,
)
def no_more_tokens_are_fed_than_must_be(student: Any, cases: Any) -> None:
    """The fewest tokens that suffice are fed: each window layer, and no global one, takes its part."""
    for stack in ("WWW", "WGWWG", "W"):
        text = Text(cases, stack, int(cases.rng.integers(3, 7)), int(cases.rng.integers(40, 60)))
        network = text.network()
        student.exact_replay(text.lend(network), text.tokens, text.hit, text.kept)
        expect_values(len(network.fed), _needed(text), given="tokens fed with " + _show(text), any_width=True)


@check(
    "exact_replay-states",
    points=3,
    catches="gives the rows of a bounded replay, or of one token too few, which differ in the top layer alone",
    hint="compare every layer with swa_forward, key by key: is the top one off?",
    uses=USES,
)
def the_rows_are_those_of_a_cold_run(student: Any, cases: Any) -> None:
    """Keys and values of every layer are those of a cold run, up to the order of sums."""
    for stack, window in (("WWW", 5), ("WGW", 4), ("WWGW", 3)):
        _expect_exact(student, _draw(cases, stack, window))


@check(
    "exact_replay-short",
    points=1,
    catches="replays more than there is, or stumbles over an empty hit or a window of 1",
    hint="a hit shorter than the replay is run from its first token; W = 1 leaves nothing to rebuild",
    uses=USES,
)
def short_hits_are_replayed_whole(student: Any, cases: Any) -> None:
    """A short hit is replayed whole, a hit of 0 not at all, and for a window of 1 nothing is fed."""
    window = int(cases.rng.integers(4, 7))
    for stack, own_window, hit in (("WWW", window, 2 * window), ("WGW", window, window - 2), ("WW", window, 0)):
        text = Text(cases, stack, own_window, hit, turns=True)
        _expect_fed(text, _expect_exact(student, text))
    text = Text(cases, "WW", 1, 12, turns=True)
    _expect_fed(text, _expect_exact(student, text))


def _expect_fed(text: Text, n_fed: int) -> None:
    expect_values(n_fed, _needed(text), given="tokens fed with " + _show(text), any_width=True)


def _expect_exact(student: Any, text: Text) -> int:
    """Expect the rows of a cold run, or the student's own bounded ones; return how many tokens were fed."""
    network = text.network()
    n_layers = len(network.kinds)
    got = as_cache(student.exact_replay(text.lend(network), text.tokens, text.hit, text.kept), n_layers)
    layers = list(range(n_layers))
    try:
        expect_rows(got, text.cold, layers, BOTH, _show(text))
    except Mismatch:
        own = _own(student, text)
        if own is None:
            raise
        expect_rows(got, own, layers, BOTH, _show(text))
    return len(network.fed)


def _own(student: Any, text: Text) -> list[Rows] | None:
    """Return what the student's own bounded replay gives of the tokens needed, if it is an attempt at that.

    Its first layer must hold the right values, which no slip in positions, mask or number of rows can change.
    """
    network = text.network()
    try:
        got = student.bounded_replay(text.lend(network), text.tokens, text.hit, _needed(text), text.kept)
        cache = as_cache(got, len(network.kinds))
    except (Raised, Mismatch):
        return None
    first = text.windows[0]
    is_attempt = first > 0 or is_near(cache[first].values, text.cold[first].values)
    return cache if is_attempt else None
