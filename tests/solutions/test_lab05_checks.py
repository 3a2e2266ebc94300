"""What the checks of lab 5 stand on: inputs clear of ties, no gifts, and nothing that is no answer breaks one."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from fp4kv.kernels import quantise_pack
from labkit.expect import Mismatch
from labkit.formats import E2M1_TIES
from labkit.given.lab02 import quantise_e2m1

from autograder.checks import Cases
from autograder.lab import load_checks

from .conftest import PROJECT

CHECKS = load_checks(PROJECT / "solutions" / "checks" / "lab05_kernel.py")
N_SEEDS = 20

NOT_AN_ANSWER = {
    "none": None,
    "text": "FP16",
    "nan": float("nan"),
    "nothing": np.zeros((0, 3)),
    "unequal": [[1], [2, 3]],
    "three of nothing": (None, None, None),
    "a long text": "x" * 100_000,
    "a dict": {"name": "missing_barrier"},
}


class NoKernel:
    """A machine without kernels: what is asked of it has come too far."""

    def run(self, source, launches, **options):
        raise Mismatch("a kernel", source[:20])


def passes(check, answer):
    """Return whether a check passes a function that always gives this answer."""
    student = SimpleNamespace(**{check.task: lambda *args: answer}, text=lambda name: "")
    try:
        check.run(student, Cases(b"a seed", NoKernel()))
    except Mismatch:
        return False
    return True


@pytest.mark.parametrize("name", NOT_AN_ANSWER)
def test_what_is_no_answer_is_a_mismatch_in_every_check(name):
    assert [check.id for check in CHECKS if passes(check, NOT_AN_ANSWER[name])] == []


def inputs():
    """Return the module of the checks' inputs."""
    return sys.modules["autograder_checks_lab05_kernel.inputs"]


@pytest.mark.parametrize("seed", range(N_SEEDS))
def test_ordinary_groups_are_far_from_every_tie(seed):
    x = inputs().ordinary_groups(Cases(bytes([seed])), 64)
    scales = quantise_e2m1(x).scales[:, :, None]
    amax = np.abs(x).max(axis=1, keepdims=True)
    np.testing.assert_array_equal(amax / 6, scales[:, 0])  # the scale is exact, so far from its own ties
    quotients = np.abs(x[..., None] / scales)
    assert (np.abs(quotients / E2M1_TIES - 1) > 0.05).all()


def test_sorted_halves_and_pairs_hide_order_and_nothing_else():
    packed = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(inputs().sorted_halves(packed), inputs().sorted_halves(packed << 4 | packed >> 4))
    assert len({tuple(pair) for pair in inputs().sorted_halves(packed)}) == 16 * 17 // 2
    x = np.float32([0.0, 1.0, -0.0, 1.0])
    np.testing.assert_array_equal(inputs().sorted_pairs(x[::-1])[::-1], inputs().sorted_pairs(x))
    assert (inputs().sorted_pairs(x)[0] != inputs().sorted_pairs(x)[1]).any()


def test_groups_are_repeated_to_fill_a_block():
    groups = np.arange(5 * 16, dtype=np.float32).reshape(5, 16)
    whole = inputs().whole_blocks(groups)
    assert whole.shape == (16, 16)
    np.testing.assert_array_equal(whole[:5], groups)
    np.testing.assert_array_equal(quantise_pack(whole)[1][5:10], quantise_pack(groups)[1])
