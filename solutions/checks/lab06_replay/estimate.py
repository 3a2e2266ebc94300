"""Checks of `predict_replay_error`: each term by made-up statistics, and the whole by the errors of many networks."""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_dtype_and_shape, show_number
from labkit.replay import LayerKind, ReplayStatistics

from autograder.checks import Registry

from .statistics import (
    HEADS,
    drawn,
    even_layer,
    expect_idle_heads_idle,
    expect_line,
    expect_lines_of_shorter_stacks,
    measured,
    quiet_layer,
    truncating_layer,
)

checks = Registry()
check = checks.check

ROOM = 1e-4
"""Room for float32, in sums of up to a hundred terms."""

N_NETWORKS = 24

FACTOR = 2.0
"""Over 60 draws of 24 networks the estimate was between 0.90 and 1.04 times the errors."""


def _expect(student: Any, window: int, layers: Any, given: str) -> None:
    statistics = ReplayStatistics(window, tuple(layers))
    got = student.predict_replay_error(statistics)
    expect_line(got, statistics, fp4kv.predict_replay_error, 1 - ROOM, 1 + ROOM, given)


@check(
    "predict_replay_error-truncated",
    points=1,
    catches="adds up heads, not their squares, or forgets the root",
    hint="√(Σ over heads of (mass · distance)²) after the first layer, and 0 before it",
    reveal=True,
)
def heads_add_up_in_squares(student: Any, cases: Any) -> None:
    """After the first layer the estimate is the root of Σ (mass · distance)² over heads."""
    for n_tokens, window in ((4, 4), (7, 3), (5, 9)):
        _expect(student, window, [truncating_layer(cases, n_tokens, window, heads=3)], "a single layer")
    layers = tuple(truncating_layer(cases, 5, 3, heads=2) for _ in range(3))
    expect_lines_of_shorter_stacks(student.predict_replay_error, ReplayStatistics(3, layers), "three layers")


@check(
    "predict_replay_error-inherited",
    points=1,
    catches="forgets what the residual carries, takes a gain once, or weight_squares squared",
    hint="to e² come value_rms_gain² · weight_squares · mean of e², summed over heads",
)
def errors_are_handed_on_in_squares(student: Any, cases: Any) -> None:
    """Errors before a layer are carried on, and come again with value_rms_gain² · weight_squares from each head."""
    for n_tokens, window in ((4, 4), (6, 8)):
        weights = cases.rng.uniform(0.1, 1, (HEADS, n_tokens))
        layer = quiet_layer(n_tokens, weight_squares=weights, value_rms_gain=drawn(cases, (HEADS,)))
        first = even_layer(cases, n_tokens)
        _expect(student, window, [first, layer], f"n = {n_tokens}, W = {window}")
        even = layer._replace(weight_squares=np.full((HEADS, n_tokens), 0.5))
        _expect(student, window, [first, even, layer], f"three layers, n = {n_tokens}, W = {window}")
        unmoved = layer._replace(value_rms_gain=np.zeros(HEADS), weight_squares=np.ones((HEADS, n_tokens)))
        spread = layer._replace(value_rms_gain=np.full(HEADS, 4.0), weight_squares=np.zeros((HEADS, n_tokens)))
        expect_idle_heads_idle(student.predict_replay_error, first, layer, (unmoved, spread), "a head with gain")


@check(
    "predict_replay_error-window",
    points=1,
    catches="takes the mean of e, of all tokens or of W tokens where fewer were replayed, or the largest for the mean",
    hint="the mean of e² over the replayed tokens among the last W, which are fewer at the beginning",
)
def the_mean_is_over_the_tokens_of_the_window(student: Any, cases: Any) -> None:
    """The mean of e² is over the replayed tokens that the window holds."""
    for n_tokens, window in ((9, 3), (12, 5)):
        layer = quiet_layer(n_tokens, value_rms_gain=np.ones(HEADS))
        _expect(student, window, [truncating_layer(cases, n_tokens, window), layer], f"n = {n_tokens}, W = {window}")


@check(
    "predict_replay_error-rms",
    points=2,
    catches="does not predict the errors that occur",
    hint="compare with the errors of bounded_replay, root mean square over many networks of output_scale 0.3",
    seconds=5,
)
def it_is_the_error_that_occurs_on_average(student: Any, cases: Any) -> None:
    """Over 24 networks of output scale 0.3, estimates and errors have one root mean square, within a factor of two."""
    squares = np.zeros((N_NETWORKS, 2))
    for number in range(N_NETWORKS):
        window = int(cases.rng.integers(4, 9))
        heads = int(cases.rng.integers(1, 3))
        found = measured(cases, [LayerKind.WINDOW] * 4, window, window, heads=heads, output_scale=0.3)
        given = f"W = {window}, 4 layers, {heads} heads"
        got = student.predict_replay_error(found.statistics)
        got = expect_dtype_and_shape(got, found.errors, given, any_width=True)
        squares[number] = np.mean(np.square(got[-1], dtype=np.float64)), np.mean(found.errors[-1] ** 2)
    estimated, occurred = np.sqrt(squares.mean(axis=0))
    if not occurred / FACTOR <= estimated <= occurred * FACTOR:
        raise Mismatch(
            f"{occurred:.4g}, within a factor of {FACTOR:g}", show_number(estimated), f"{N_NETWORKS} networks"
        )
