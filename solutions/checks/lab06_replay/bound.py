"""Checks of `replay_error_bound`: each term by statistics in which the others vanish, the whole by errors that occur.

In the made-up layers the limits are met by some network, so that no valid bound is below the formula there.
"""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_dtype_and_shape, show_number
from labkit.replay import LayerKind, LayerStatistics, ReplayStatistics
from labkit.replay.statistics import Mlp, Norm

from autograder.checks import Registry

from .statistics import (
    NO_CAP,
    ROUNDING_SHARE,
    SMALLEST_ERROR,
    TIGHT,
    Replayed,
    drawn,
    even_layer,
    expect_idle_heads_idle,
    expect_line,
    expect_lines_of_shorter_stacks,
    measured,
    measured_along_one_line,
    quiet_layer,
    truncating_layer,
)

checks = Registry()
check = checks.check

LEAST = 1 - ROUNDING_SHARE

LEAST_OF_STEP = {0.02: 0.98, 0.7: 0.8}
"""By the size of ε, up to half as much again: two tokens of weight ½ each, whose values are a diameter apart, move the
output by tanh(ε)/2 times the diameter when their logits move by ε apart. That is .9997 of tanh(ε/2) for ε = 0.03, and
.81 for 1.05; so much is room for a tighter bound. The error before the layer is below a hundredth of the step."""

WIDE = 1e4
"""A diameter beside which what the residual carries, below 1, is little."""

LEAST_CAPPED = 0.89
"""Where nine tenths of the mass are missing, the output moves by nine tenths of the distance, here the diameter, even
if no weight changes; how much more than that is possible depends on where the values lie. Where half is missing, a
fifth of the diameter d away, and the rest of the weight moves to a value d from both, it moves by √(1 - ¼·0.2²) d."""

N_NETWORKS = 24

STACKS = (
    [LayerKind.WINDOW] * 2,
    [LayerKind.WINDOW] * 4,
    [LayerKind.WINDOW, LayerKind.GLOBAL, LayerKind.WINDOW],
)


def _expect(student: Any, window: int, layers: Any, given: str, least: float = LEAST) -> None:
    statistics = ReplayStatistics(window, tuple(layers))
    expect_line(student.replay_error_bound(statistics), statistics, fp4kv.replay_error_bound, least, TIGHT, given)


@check(
    "replay_error_bound-first",
    points=1,
    catches="leaves out the truncated mass or the distance, or lets the largest head stand for all",
    hint="where nothing is off yet, ε is 0: what is left is mass · distance of each head",
    reveal=True,
)
def the_first_layer_is_exact(student: Any, cases: Any) -> None:
    """After the first layer the bound is Σ over heads of mass · distance, and before it nothing is off."""
    for n_tokens, window in ((4, 4), (7, 3), (5, 9)):
        statistics = ReplayStatistics(window, (truncating_layer(cases, n_tokens, window, heads=3),))
        got = student.replay_error_bound(statistics)
        found = expect_line(got, statistics, fp4kv.replay_error_bound, LEAST, TIGHT, "a single layer")
        if np.any(found[0] != 0):
            raise Mismatch("0 at the input of the first layer", show_number(found[0].max()), "a single layer")
    layers = tuple(truncating_layer(cases, 5, 3, heads=2) for _ in range(3))
    expect_lines_of_shorter_stacks(student.replay_error_bound, ReplayStatistics(3, layers), "three layers")


@check(
    "replay_error_bound-values",
    points=1,
    catches="forgets what the residual carries, or takes the token's own error, or all tokens', for the window's",
    hint="the output keeps e, and adds value_gain times the largest error among the tokens that the window still holds",
)
def rebuilt_values_bring_their_errors(student: Any, cases: Any) -> None:
    """Errors of rebuilt values come with value_gain, from the worst token of the window, on top of the residual's."""
    for n_tokens, window in ((5, 5), (9, 3), (12, 4)):
        alike = np.zeros(
            (1, n_tokens)
        )  # the values of a cold run: no movement of the weights shows, and none is capped
        rebuilding = quiet_layer(n_tokens, value_gain=drawn(cases, (1,)), value_diameter=alike)
        layers = [truncating_layer(cases, n_tokens, window), rebuilding]
        _expect(student, window, layers, f"n = {n_tokens}, W = {window}")
    live, idle = (
        quiet_layer(4, value_diameter=np.zeros((1, 4)), value_gain=np.full(1, gain)) for gain in (drawn(cases, ()), 0)
    )
    expect_idle_heads_idle(student.replay_error_bound, even_layer(cases, 4), live, (idle,), "a head with value_gain")


@check(
    "replay_error_bound-weights",
    points=1,
    catches="forgets √D, the half of the key's diameter, a term of ε, or the tanh of its half",
    hint="ε counts the query's error by half the diameter of the keys, and the key's error by the norm of the query",
)
def weights_move_by_the_softmax_step(student: Any, cases: Any) -> None:
    """Errors of queries and keys move the output by tanh(ε/2) times the diameter of the values."""
    n_tokens, window = 6, 8
    first = even_layer(cases, n_tokens)
    before = (first.truncated_mass * first.mean_distance).sum(axis=0)
    for size, least in LEAST_OF_STEP.items():
        for head_width in (16, 64):
            epsilon = size * cases.rng.uniform(1, 1.5, (1, n_tokens)) * np.sqrt(head_width)
            gain, alone = drawn(cases, (1,)), np.sqrt(epsilon.min(axis=1)) / before[0]
            terms = {
                "queries": {"query_gain": gain, "key_diameter": 2 * epsilon / (gain[:, None] * before)},
                "keys": {"key_gain": gain, "query_norm": epsilon / (gain[:, None] * before)},
                "both, where the query was 0": {"query_gain": alone, "key_gain": alone},
            }
            for name, changed in terms.items():
                layer = quiet_layer(
                    n_tokens,
                    value_diameter=WIDE * drawn(cases, (1, n_tokens)),
                    weight_squares=np.full((1, n_tokens), 0.5),
                    head_width=head_width,
                    **changed,
                )
                _expect(student, window, [first, layer], f"errors of {name}, D = {head_width}", least)
    live, gentle, wild = (_moving_head(cases, n_tokens, size) for size in (0.3, 0.1, 10))
    idle = tuple(head._replace(value_diameter=np.zeros((1, n_tokens))) for head in (gentle, wild))
    expect_idle_heads_idle(student.replay_error_bound, first, live, idle, "a head whose weights move")


def _moving_head(cases: Any, n_tokens: int, size: float) -> LayerStatistics:
    gain, by_token = (size * drawn(cases, shape) for shape in ((1,), (1, n_tokens)))
    weights = {"query_gain": gain, "key_gain": gain, "query_norm": by_token, "key_diameter": by_token}
    return quiet_layer(n_tokens, value_diameter=np.full((1, n_tokens), WIDE), **weights)


@check(
    "replay_error_bound-capped",
    points=1,
    catches="leaves the convex hull: no average of values is farther from another than the diameter",
    hint="min(mass · distance + tanh(ε/2) · diameter, diameter), head by head, before the values' own errors are added",
)
def no_head_leaves_its_convex_hull(student: Any, cases: Any) -> None:
    """Where almost all mass is missing and weights are free, a head moves its output by the diameter, and no more."""
    for n_tokens, window, mass, share in ((6, 8, 0.9, 1.0), (5, 3, 0.9, 1.0), (6, 8, 0.5, 0.2)):
        diameter = drawn(cases, (1, n_tokens))
        layer = quiet_layer(
            n_tokens,
            truncated_mass=np.full((1, n_tokens), mass),
            mean_distance=share * diameter,
            value_diameter=diameter,
            query_gain=1e4 * drawn(cases, (1,)),
            key_gain=1e4 * drawn(cases, (1,)),  # whoever forgets the errors of queries, or of keys, loses nothing here
            query_norm=drawn(cases, (1, n_tokens)),
            key_diameter=drawn(cases, (1, n_tokens)),
        )
        _expect(student, window, [even_layer(cases, n_tokens), layer], f"large ε, W = {window}", LEAST_CAPPED)


@check(
    "replay_error_bound-norms",
    points=1,
    catches="ignores the norm in front of attention, or the MLP behind it",
    hint="u = layer.input_error(e), and the line is layer.output_error(e + what the heads add)",
)
def norms_and_mlps_have_their_say(student: Any, cases: Any) -> None:
    """What the heads get is off by input_error, and what leaves the layer by output_error."""
    n_tokens, window = 5, 4
    norm = Norm(2 * float(drawn(cases, ())), 2 + drawn(cases, (n_tokens,)))
    mlp = Mlp(Norm(2 * float(drawn(cases, ())), 3 + drawn(cases, (n_tokens,))), float(drawn(cases, ())))
    for name, changed in (("a norm", {"norm": norm}), ("an MLP", {"mlp": mlp}), ("both", {"norm": norm, "mlp": mlp})):
        wide = np.full((1, n_tokens), NO_CAP)
        layer = quiet_layer(n_tokens, value_gain=drawn(cases, (1,)), value_diameter=wide, **changed)
        _expect(student, window, [truncating_layer(cases, n_tokens, window), layer], name)


@check(
    "replay_error_bound-never_below",
    points=2,
    catches="promises less than what happens",
    hint="compare with the errors of bounded_replay on many networks, layer by layer",
    seconds=5,
)
def it_is_never_below_an_error_that_occurs(student: Any, cases: Any) -> None:
    """No error of any layer and token is above the bound, whatever the weights."""
    for gain in (0.1, 0.3, 0.8):
        window = int(cases.rng.integers(4, 9))
        found = measured_along_one_line(cases, 4, window, gain)
        _expect_above(student, found, f"W = {window}, 4 layers, all errors in one direction, gain {gain}")
    for number in range(N_NETWORKS):
        kinds, window = STACKS[number % len(STACKS)], int(cases.rng.integers(3, 7))
        options = {
            "heads": int(cases.rng.integers(1, 3)),
            "output_scale": float(np.exp2(cases.rng.uniform(-4, 2))),
            "logit_scale": float(np.exp2(cases.rng.uniform(-1, 3))),
        }
        found = measured(cases, kinds, window, window + int(cases.rng.integers(0, window)), **options)
        _expect_above(student, found, f"W = {window}, {len(kinds)} layers, {options}")


def _expect_above(student: Any, found: Replayed, given: str) -> None:
    got = student.replay_error_bound(found.statistics)
    bound = expect_dtype_and_shape(got, found.errors, given, any_width=True).astype(np.float64)
    low = ~(bound >= found.errors * (1 - ROUNDING_SHARE) - SMALLEST_ERROR)
    if np.any(low):
        at = tuple(np.argwhere(low)[0].tolist())
        raise Mismatch(
            f"at least {show_number(found.errors[at])}, an error that occurs", show_number(bound[at]), given, at
        )
