"""The least evidence that convicts one faulty attention alone: what `convict-fewest` asks for is the minimum."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import fp4kv
import numpy as np
import pytest
from labkit.expect import Mismatch
from labkit.suspects.lab03 import SUSPECTS, Exhibit, convicted

from autograder.lab import load_checks

CHECKS = Path(__file__).resolve().parents[2] / "solutions" / "checks" / "lab03_errors.py"
FEWEST = {"double_rounding": 1, "narrow_sum": 2, "low_mask": 3}
PARTS = ("q", "keys", "values")
BESIDE_A_TIE = 2.0**-11 * (1 + 2.0**-12)
TELLING = (BESIDE_A_TIE, -BESIDE_A_TIE, 6.3751, -2600.0, 7e3, -6e4, 3e38)
"""Elements beside a tie of a code and of a scale, ordinary ones, and such as make logits large."""


def evidence(name):
    """Return the smallest exhibit for a suspect."""
    q, keys, values = {
        "double_rounding": ([0], [0], [BESIDE_A_TIE]),
        "narrow_sum": ([6e4], [6], [0]),
        "low_mask": ([-7e3], [6, 0], [6, 0]),
    }[name]
    return exhibit_of(*({(0, row): x for row, x in enumerate(part)} for part in (q, keys, values)), len(keys))


def exhibit_of(q, keys, values, n_tokens):
    """Return an exhibit with the given elements, by (channel, row); the last of several tokens is hidden."""
    arrays = []
    for elements, n in ((q, 1), (keys, n_tokens), (values, n_tokens)):
        array = np.zeros((n, 16), np.float32)
        for (channel, row), x in elements.items():
            array[row, channel] = x
        arrays.append(array)
    return Exhibit(*arrays, np.arange(n_tokens)[None] < max(1, n_tokens - 1))


def exhibits(count, n_tokens):
    """Yield every exhibit with so many telling elements, in the first two channels of any row of any part."""
    places = [(part, channel, 0) for part in PARTS for channel in range(2)]
    places += [(part, channel, row) for part in PARTS[1:] for channel in range(2) for row in range(1, n_tokens)]
    for chosen in itertools.combinations(places, count):
        for numbers in itertools.product(TELLING, repeat=count):
            parts = {part: {} for part in PARTS}
            for (part, channel, row), x in zip(chosen, numbers, strict=True):
                parts[part][channel, row] = x
            yield exhibit_of(parts["q"], parts["keys"], parts["values"], n_tokens)


def convicted_by(count, n_tokens):
    return {name for x in exhibits(count, n_tokens) for name in convicted(x, fp4kv.attention_weights)}


@pytest.mark.parametrize("name", SUSPECTS)
def test_so_few_elements_convict_a_suspect_alone(name):
    exhibit = evidence(name)
    assert convicted(exhibit, fp4kv.attention_weights) == [name]
    assert sum(np.count_nonzero(part) for part in exhibit[:3]) == FEWEST[name]


@pytest.mark.parametrize("n_tokens", [1, 2, 3])
def test_zeros_convict_nobody(n_tokens):
    assert convicted_by(0, n_tokens) == set()


@pytest.mark.parametrize("n_tokens", [1, 2, 3])
def test_one_element_convicts_double_rounding_at_most(n_tokens):
    assert convicted_by(1, n_tokens) == {"double_rounding"}


@pytest.mark.parametrize("n_tokens", [1, 2])
def test_two_elements_do_not_convict_low_mask(n_tokens):
    assert convicted_by(2, n_tokens) == {"double_rounding", "narrow_sum"}


def test_the_check_asks_for_the_minimum():
    (fewest,) = [check for check in load_checks(CHECKS) if check.id == "convict-fewest"]
    found = {name: evidence(name) for name in SUSPECTS}
    fewest.run(SimpleNamespace(convict=lambda: found), None)
    for name, exhibit in found.items():
        larger = exhibit._replace(values=exhibit.values + np.float32(np.eye(len(exhibit.values), 16, 5)))
        with pytest.raises(Mismatch, match=name):
            fewest.run(SimpleNamespace(convict=lambda name=name, larger=larger: found | {name: larger}), None)
