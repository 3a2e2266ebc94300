"""What the checks of lab 6 stand on: networks that count, texts that tell replays apart, limits that are met."""

import copy
import sys
from types import SimpleNamespace

import fp4kv
import numpy as np
import pytest
from labkit.expect import Mismatch, Raised
from labkit.replay import Network, Rows, ToyNetwork
from labkit.replay.costs import Policy, ReplayCost
from labkit.suspects.lab06 import Fault

from autograder.checks import Cases, Loan
from autograder.lab import load_checks

from .conftest import PROJECT

CHECKS = load_checks(PROJECT / "solutions" / "checks" / "lab06_replay.py")
N_SEEDS = 10

NOT_AN_ANSWER = {
    "none": None,
    "text": "FP16",
    "nan": float("nan"),
    "a large number": 10**30,
    "nothing": np.zeros((0, 3)),
    "unequal": [[1], [2, 3]],
    "a dict": {"name": "NOBODY"},
    "no layers": [],
    "layers of nothing": [None, None, None],
    "rows of nothing": [Rows(None, None)] * 3,  # type: ignore[arg-type]
    "rows of text": [("keys", "values")] * 3,
    "a cost of nan": ReplayCost(float("nan"), 0, 0.0),  # type: ignore[arg-type]
    "a cost of text": ("1", "2", "3"),
    "less than nothing": -1,
    "all true": np.ones((3, 3), bool),
    **{f"always {policy.name}": policy for policy in Policy},
    **{f"always {fault.name}": fault for fault in Fault},
}


class Function:
    """What a check may do with one function of a student's, on copies; what is lent is the object itself."""

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, *args):
        return self.and_arguments(*args)[0]

    def and_arguments(self, *args):
        given = [arg.thing if isinstance(arg, Loan) else copy.deepcopy(arg) for arg in args]
        try:
            return self.answer(*given), given
        except ValueError as error:
            raise Raised(("ValueError",), str(error)) from error


def run(check, answer, seed=b"a seed"):
    """Run a check with an answer to its task, all else being the reference's."""
    names = {name: Function(getattr(fp4kv, name)) for name in fp4kv.__all__}
    student = SimpleNamespace(**{**names, check.task: Function(answer)})
    with np.errstate(all="ignore"):
        check.run(student, Cases(seed))


def passes(check, answer):
    """Return whether a check passes an answer."""
    try:
        run(check, answer)
    except (Mismatch, Raised):
        return False
    return True


def part(name):
    """Return a module of the checks."""
    return sys.modules[f"autograder_checks_lab06_replay.{name}"]


@pytest.mark.parametrize("name", NOT_AN_ANSWER)
def test_what_is_no_answer_is_a_mismatch_in_every_check(name):
    assert [check.id for check in CHECKS if passes(check, lambda *args: copy.copy(NOT_AN_ANSWER[name]))] == []


def test_the_argument_itself_is_no_answer():
    assert [check.id for check in CHECKS if passes(check, lambda *args: args[0] if args else None)] == []


def test_a_refusal_of_everything_is_no_answer():
    def refuse(*args):
        raise ValueError("no")

    assert [check.id for check in CHECKS if passes(check, refuse)] == []


def exactly(network, tokens, hit, replay_tokens, kept):
    """Replay exactly whatever is asked."""
    return fp4kv.exact_replay(network, tokens, hit, kept)


@pytest.mark.parametrize("seed", range(N_SEEDS))
def test_exact_rows_are_no_bounded_ones_and_bounded_ones_not_exact(seed):
    with pytest.raises(Mismatch):
        run(CHECKS["bounded_replay-rows"], exactly, bytes([seed]))

    def bounded(network, tokens, hit, kept):
        return fp4kv.bounded_replay(network, tokens, hit, network.window, kept)

    with pytest.raises(Mismatch):
        run(CHECKS["exact_replay-states"], bounded, bytes([seed]))


@pytest.mark.parametrize("seed", range(N_SEEDS))
def test_one_token_fewer_shows_in_the_top_layer(seed):
    networks = part("networks")
    text = part("exact")._draw(Cases(bytes([seed])), "WGW", 5)
    needed = 2 * 4
    for replay_tokens, is_exact in ((needed - 1, False), (needed, True)):
        top = text.replayed(replay_tokens)[2]
        assert networks.is_near(top.keys, text.cold[2].keys) is is_exact
    assert np.abs(text.replayed(needed - 1)[2].values - text.cold[2].values).max() > networks.APART


def test_counting_networks_are_networks():
    network = part("networks").CountingNetwork(ToyNetwork(layers=2, window=3), start=0)
    assert isinstance(network, Network)


@pytest.mark.parametrize("shift", [0, 20])
def test_positions_that_begin_elsewhere_lose_nothing_unless_they_turn(shift):
    cases, networks = Cases(b"a seed"), part("networks")
    text = networks.Text(cases, "WGW", 4, 20)
    network, positions = text.network(6), np.arange(14, 20)
    hidden = network.embed(text.tokens[positions])
    keys = network.rows(0, hidden, positions - 14 + shift).keys
    np.testing.assert_array_equal(keys, text.network(6).rows(0, hidden, positions).keys)
    turning = networks.CountingNetwork(network._network, start=14, turns=True)
    assert np.abs(turning.rows(0, hidden, positions - 14 + shift).keys - keys).max() > 0.1


@pytest.mark.parametrize(
    ("method", "args", "message"),
    [
        ("embed", ([[1]],), "tokens: expected one row"),
        ("embed", ([0.5],), "tokens: expected one row"),
        ("embed", ([64],), "tokens: expected numbers from 0 to 63"),
        ("embed", (np.zeros(257, int),), "tokens: expected one row of up to 256"),
        ("rows", (2, np.zeros((1, 16)), [0]), "layer: expected numbers from 0 to 1"),
        ("rows", (None, np.zeros((1, 16)), [0]), "layer: expected one row"),
        ("rows", (0, np.zeros((1, 15)), [0]), "hidden: expected float64 of shape"),
        ("rows", (0, "hidden", [0]), "hidden: expected float64 of shape"),
        ("rows", (0, np.zeros((300, 16)), np.zeros(300, int)), "hidden: expected float64 of shape"),
        ("rows", (0, np.zeros((2, 16)), [0]), "positions: expected one for each of 2 tokens"),
        ("rows", (0, np.zeros((2, 16)), [5, 1]), "positions: expected them to grow"),
        ("attend", (0, np.zeros((1, 16)), [0], None, None), "rows: expected keys and values"),
        ("attend", (0, np.zeros((1, 16)), [0], np.zeros((2, 1, 3, 16)), None), "rows: expected keys and values"),
        ("attend", (0, np.zeros((1, 16)), [0], [np.zeros((1, 3, 16))] * 2, None), "is_visible: expected"),
        ("attend", (0, np.zeros((1, 16)), [0], [np.zeros((1, 3, 16))] * 2, [[1, 1, 1]]), "is_visible: expected bool"),
        ("attend", (0, np.zeros((1, 16)), [0], [np.zeros((1, 1, 16))] * 2, [[False]]), "is_visible: expected a row"),
        ("attend", (1, np.zeros((1, 16)), [9], [np.zeros((1, 3, 16))] * 2, [[True] * 3]), "is_visible: expected None"),
    ],
)
def test_what_is_no_call_is_refused(method, args, message):
    text = part("networks").Text(Cases(b"a seed"), "WG", 3, 8)
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        getattr(text.network(), method)(*args)


@pytest.mark.parametrize("seed", range(N_SEEDS))
def test_the_reference_meets_every_limit_of_the_bound(seed):
    for check in CHECKS:
        if check.task in ("replay_error_bound", "predict_replay_error"):
            run(check, getattr(fp4kv, check.task), bytes([seed]))


@pytest.mark.parametrize(("factor", "is_right"), [(0.98, False), (1.0005, True), (1.01, False)])
def test_a_bound_of_one_layer_is_met_from_both_sides(factor, is_right):
    check = CHECKS["replay_error_bound-first"]
    assert passes(check, lambda statistics: factor * fp4kv.replay_error_bound(statistics)) is is_right


def test_a_line_is_judged_by_the_line_before():
    """Twice the mass in the first layer loses the first layer, not what the second one makes of it."""

    def twice(statistics):
        layers = [layer._replace(mean_distance=2 * layer.mean_distance) for layer in statistics.layers]
        return fp4kv.replay_error_bound(statistics._replace(layers=tuple(layers)))

    lost = {check.id for check in CHECKS if check.task == "replay_error_bound" and not passes(check, twice)}
    assert "replay_error_bound-first" in lost
    assert not {"replay_error_bound-values", "replay_error_bound-norms", "replay_error_bound-weights"} & lost


@pytest.mark.parametrize(("spare", "lost"), [(0, set()), (1, {"fewest"}), (-1, {"survives", "fewest"})])
def test_a_longer_ring_survives_and_a_shorter_one_does_not(spare, lost):
    def length(window, drafts, is_written_first):
        return fp4kv.ring_length(window, drafts, is_written_first) + spare

    found = {check.id for check in CHECKS if check.task == "ring_length" and not passes(check, length)}
    assert found == {f"ring_length-{name}" for name in lost}


@pytest.mark.parametrize("seed", range(N_SEEDS))
def test_a_policy_is_asked_for_with_different_answers(seed):
    answers = set()

    def choose(*args):
        answers.add(fp4kv.choose_policy(*args))
        return fp4kv.choose_policy(*args)

    run(CHECKS["choose_policy-fastest"], choose, bytes([seed]))
    assert answers >= {Policy.FULL_CACHE, Policy.CHECKPOINTS, Policy.BOUNDED_REPLAY}
