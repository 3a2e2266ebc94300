"""Statistics of made-up layers, in which one term counts and the others vanish; and recorded ones of drawn networks."""

from typing import Any, NamedTuple

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_close, expect_dtype_and_shape, show_number
from labkit.replay import (
    LayerKind,
    LayerStatistics,
    ReplayStatistics,
    ToyNetwork,
    cache_of,
    record_statistics,
    swa_forward,
)
from labkit.replay.toy import VOCABULARY

from .untouched import expect_untouched

ROUNDING_SHARE = 1e-9
"""Share by which a float64 bound may be below an error that it equals: sums of a few hundred terms in any order are off
by less than 2^10 · 2^-53, 1e-13 of their terms."""

SMALLEST_ERROR = 1e-11
"""What an error that is zero may come to: hidden vectors of length up to 2^7, of which float64 keeps 2^-46, after four
layers that each may make it ten times larger."""

TIGHT = 1.001
"""How far above the printed formula a bound may be: room for float32, none for another formula."""

SLIP = 40
"""The factor by which a line of the student's may be off and still be asked what the next one makes of it."""

NO_CAP = 1e300
"""A diameter that caps nothing, and times no movement of the weights is 0."""

HEAD_WIDTH = 16
HEADS = 1
"""Of made-up layers, so that whoever does not add up heads loses the check of that alone."""


def quiet_layer(n_tokens: int, heads: int = HEADS, **changed: Any) -> LayerStatistics:
    """Return a layer that truncates nothing and passes nothing on, but for what is changed."""
    by_token = np.zeros((heads, n_tokens))
    by_head = np.zeros(heads)
    layer = LayerStatistics(
        truncated_mass=by_token,
        mean_distance=by_token,
        value_diameter=np.ones_like(by_token),
        query_norm=by_token,
        key_diameter=by_token,
        weight_squares=np.ones_like(by_token),
        query_gain=by_head,
        key_gain=by_head,
        value_gain=by_head,
        value_rms_gain=by_head,
        head_width=HEAD_WIDTH,
    )
    return layer._replace(**changed)


def truncating_layer(cases: Any, n_tokens: int, window: int, heads: int = HEADS) -> LayerStatistics:
    """Return a layer whose first W - 1 tokens miss rows, and the others none: where errors come from."""
    is_cut = np.arange(n_tokens) < window - 1
    mass = cases.rng.uniform(0.05, 0.6, (heads, n_tokens)) * is_cut
    distance = cases.rng.uniform(0.2, 1.5, (heads, n_tokens)) * is_cut
    return quiet_layer(n_tokens, heads, truncated_mass=mass, mean_distance=distance, value_diameter=2 + distance)


def even_layer(cases: Any, n_tokens: int) -> LayerStatistics:
    """Return a layer that leaves every token with the same error."""
    mass, distance = (np.full((1, n_tokens), cases.rng.uniform(0.2, 0.6)) for _ in range(2))
    return quiet_layer(n_tokens, truncated_mass=mass, mean_distance=distance)


def drawn(cases: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers from a half to two."""
    return np.asarray(np.exp2(cases.rng.uniform(-1, 1, shape)))


def expect_line(
    got: Any, statistics: ReplayStatistics, formula: Any, least: float, most: float, given: str
) -> np.ndarray:
    """Expect the last line of an answer to be within factors of the formula, over its own line before or the right one.

    `formula` is the reference, which is asked about the last layer with either line in place of the one before.
    """
    right = formula(statistics)
    found = expect_dtype_and_shape(got, right, given, any_width=True).astype(np.float64)
    wanted = right[-1]
    if not _is_within(found[-1], wanted, least, most) and len(statistics.layers) > 1:
        wanted = _after_own_line(found[-2], right[-2], statistics, formula, wanted)
    for token, (mine, own) in enumerate(zip(found[-1], wanted, strict=True)):
        if not least * own - SMALLEST_ERROR <= mine <= most * own + SMALLEST_ERROR:
            limits = f"{show_number(own)}" if least > 0.9 else f"at most {show_number(own)}"
            raise Mismatch(limits, show_number(mine), f"token {token} of {given}")
    return found


def _is_within(found: np.ndarray, wanted: np.ndarray, least: float, most: float) -> bool:
    return bool(np.all((found >= least * wanted - SMALLEST_ERROR) & (found <= most * wanted + SMALLEST_ERROR)))


def _after_own_line(
    own: np.ndarray, right: np.ndarray, statistics: ReplayStatistics, formula: Any, wanted: np.ndarray
) -> np.ndarray:
    """Return what the formula makes of the student's line before, if that is right within a factor of `SLIP`."""
    if not np.all((own >= right / SLIP - SMALLEST_ERROR) & (own <= right * SLIP + SMALLEST_ERROR)):
        return wanted
    n_tokens = len(own)
    first = quiet_layer(
        n_tokens,
        truncated_mass=np.ones((1, n_tokens)),
        mean_distance=own[None],
        value_diameter=np.full((1, n_tokens), NO_CAP),
    )
    return np.asarray(formula(statistics._replace(layers=(first, statistics.layers[-1])))[-1])


def expect_lines_of_shorter_stacks(student_function: Any, statistics: ReplayStatistics, given: str) -> None:
    """Expect the lines of a stack to begin with those of its first layers alone, and statistics to stay untouched."""
    got, after = student_function.and_arguments(statistics)
    expect_untouched(after, [statistics], "statistics")
    n_lines, n_tokens = len(statistics.layers) + 1, statistics.layers[0].truncated_mass.shape[1]
    whole = expect_dtype_and_shape(got, np.zeros((n_lines, n_tokens)), given, any_width=True)
    for n_layers in range(1, n_lines - 1):
        shorter = statistics._replace(layers=statistics.layers[:n_layers])
        part = expect_dtype_and_shape(student_function(shorter), whole[: n_layers + 1], given, any_width=True)
        expect_close(whole[: n_layers + 1], part, (TIGHT - 1) * np.abs(part), given=f"the first lines of {given}")


def expect_idle_heads_idle(
    student_function: Any, first: LayerStatistics, live: LayerStatistics, idle: tuple[LayerStatistics, ...], given: str
) -> None:
    """Expect a head that adds nothing to add nothing, whatever its gains and on whichever side of the other.

    Whoever does not add up heads keeps this: it may be less than what the other head adds alone, and no more.
    """

    def ask(*heads: LayerStatistics) -> np.ndarray:
        layers = (first, _side_by_side(*heads))
        got = student_function(ReplayStatistics(first.truncated_mass.shape[1], layers))
        shape = (3, first.truncated_mass.shape[1])
        return expect_dtype_and_shape(got, np.zeros(shape), given, any_width=True)[-1].astype(np.float64)

    alone = ask(live)
    found = [ask(*pair) for other in idle for pair in ((live, other), (other, live))]
    for line in found:
        expect_close(line, found[0], (TIGHT - 1) * np.abs(found[0]), given=f"{given}, and a head that adds nothing")
        if not np.all(line <= TIGHT * alone):
            limit = show_number(alone.max())
            raise Mismatch(f"at most {limit}", show_number(line.max()), f"{given}, and a head that adds nothing")


def _side_by_side(*heads: LayerStatistics) -> LayerStatistics:
    parts = zip(*heads, strict=True)
    return LayerStatistics(*(np.concatenate(part) if isinstance(part[0], np.ndarray) else part[0] for part in parts))


class Replayed(NamedTuple):
    """What was recorded of a cold run, and how far a replay is off, by layer and token."""

    statistics: ReplayStatistics
    errors: np.ndarray


def measured(cases: Any, kinds: list[LayerKind], window: int, replay_tokens: int, **options: Any) -> Replayed:
    """Return the statistics of a drawn network and text, and the errors of its replay."""
    hit = int(cases.rng.integers(4 * window, 6 * window))
    network = ToyNetwork(window=window, seed=int(cases.rng.integers(2**31)), kinds=kinds, **options)
    return _replayed(network, cases.rng.integers(0, VOCABULARY, hit), replay_tokens)


def measured_along_one_line(cases: Any, layers: int, window: int, gain: float) -> Replayed:
    """Return the same for a network in which all errors point one way, so that they add up as in the worst case.

    Hidden vectors lie on one line, on its one side for tokens before the replay and on the other for those replayed;
    each head takes the plain mean of its window, times the gain.
    """
    network = ToyNetwork(layers, window, logit_scale=0.0)
    line = np.zeros(network.embedding.shape[1])
    line[int(cases.rng.integers(line.size))] = 1
    network.embedding[:] = np.outer(np.where(np.arange(VOCABULARY) < VOCABULARY // 2, 1, -1), line)
    network.to_value[:], network.to_output[:] = np.outer(line, line), gain * np.outer(line, line)
    before, replayed = (side * VOCABULARY // 2 + cases.rng.integers(0, VOCABULARY // 2, window) for side in (0, 1))
    return _replayed(network, np.concatenate([before, replayed]), window)


def _replayed(network: ToyNetwork, tokens: np.ndarray, replay_tokens: int) -> Replayed:
    hit = len(tokens)
    run = swa_forward(network, tokens)
    cold = cache_of(run, network, hit)
    positions = np.arange(hit - replay_tokens, hit)
    is_visible = fp4kv.window_mask(positions, positions, network.window)
    hidden, errors = network.embed(tokens[positions]), [np.zeros(replay_tokens)]
    for layer, kind in enumerate(network.kinds):
        if kind is LayerKind.GLOBAL:
            hidden = network.attend(layer, hidden, positions, cold[layer])
        else:
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, is_visible)
        errors.append(np.linalg.norm(hidden - run.hidden[layer + 1, positions], axis=-1))
    return Replayed(record_statistics(network, run, hit, replay_tokens), np.stack(errors))
