"""What the checks of lab 4 stand on: vectors that E2M1 keeps exactly, questions that tell mistakes apart, no gifts."""

import sys
from types import SimpleNamespace

import fp4kv
import numpy as np
import pytest
from labkit.expect import Mismatch
from labkit.formats import Cached, QuantisedE2M1
from labkit.given.lab02 import dequantise, quantise_e2m1
from labkit.suspects.lab04 import Cause, Diagnosis, Repaired

from autograder.checks import Cases
from autograder.lab import load_checks

from .conftest import PROJECT

CHECKS = load_checks(PROJECT / "solutions" / "checks" / "lab04_outliers.py")
N_SEEDS = 5

NOT_AN_ANSWER = {
    "none": None,
    "text": "FP16",
    "nan": float("nan"),
    "a large number": 10**30,
    "nothing": np.zeros((0, 3)),
    "unequal": [[1], [2, 3]],
    "a dict": {"name": "OUTLIER"},
    "numbers": (1.0, 2.0, 3.0),
    "cached nothing": Cached(None, None),  # type: ignore[arg-type]
    "cached nan": Cached(np.full((3, 16), np.nan, np.float32), np.nan),
    "codes of nothing": QuantisedE2M1(None, None, None),  # type: ignore[arg-type]
    "diagnosis of text": Diagnosis("OUTLIER", "2", "37"),  # type: ignore[arg-type]
    "repaired nothing": Repaired(None, None),  # type: ignore[arg-type]
    **{f"always {cause.name}": Diagnosis(cause, None, None) for cause in Cause},
}


class Function:
    """What a check may do with one function of a student's."""

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, *args):
        return self.answer(*args)

    def and_arguments(self, *args):
        return self.answer(*args), args


def passes(check, answer):
    """Return whether a check passes an answer to its task, all else being the reference's."""
    names = {name: Function(getattr(fp4kv, name)) for name in fp4kv.__all__}
    student = SimpleNamespace(**{**names, check.task: Function(answer)})
    try:
        with np.errstate(all="ignore"):
            check.run(student, Cases(b"a seed"))
    except Mismatch:
        return False
    return True


def part(name):
    """Return a module of the checks."""
    return sys.modules[f"autograder_checks_lab04_outliers.{name}"]


@pytest.mark.parametrize("name", NOT_AN_ANSWER)
def test_what_is_no_answer_is_a_mismatch_in_every_check(name):
    assert [check.id for check in CHECKS if passes(check, lambda *args: NOT_AN_ANSWER[name])] == []


def test_the_argument_itself_is_no_answer():
    assert [check.id for check in CHECKS if passes(check, lambda *args: args[0] if args else None)] == []


@pytest.mark.parametrize("width", [16, 64])
@pytest.mark.parametrize("kind", ["_lone_outliers", "_bent"])
def test_caches_of_one_property_are_exact_rotated_or_not(kind, width):
    x = getattr(part("rotation"), kind)(Cases(b"a seed"), 200, width)
    for stored in (x, fp4kv.rotate_hadamard(x).astype(np.float32)):
        np.testing.assert_array_equal(dequantise(quantise_e2m1(stored)), stored)


def test_bent_vectors_are_their_own_rotation():
    for width in (16, 64):
        x = part("rotation")._bent(Cases(b"a seed"), 20, width)
        np.testing.assert_array_equal(fp4kv.rotate_hadamard(x), x)


@pytest.mark.parametrize("seed", range(N_SEEDS))
@pytest.mark.parametrize("property", ["best", "error", "budget"])
def test_questions_about_schemes_have_different_answers(property, seed):
    answers = []

    def choose(x, budget_bits):
        answers.append(fp4kv.choose_scheme(x, budget_bits))
        return answers[-1]

    CHECKS[f"choose_scheme-{property}"].run(SimpleNamespace(choose_scheme=choose), Cases(bytes([seed])))
    assert len(set(answers)) == len(answers) > 1
