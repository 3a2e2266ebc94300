"""The least evidence that convicts one suspect alone: what the check `convict-fewest` asks for is the minimum."""

import itertools

import fp4kv
import numpy as np
import pytest
from labkit.formats import E2M1_TIES
from labkit.suspects.lab02 import SUSPECTS, Parts, round_trip

PARTS = Parts(fp4kv.quantise_e2m1, fp4kv.encode_e2m1, fp4kv.pack_nibbles, fp4kv.unpack_nibbles, fp4kv.dequantise)
SCALES = np.arange(8, 16, dtype=np.float32) / 8  # other scales are these times a power of two, which changes nothing


def convicted_alone(rows):
    """Return the suspects that one of the rows convicts while it convicts no other."""
    honest = round_trip(rows, PARTS)
    differs = {name: np.any(suspect(rows, PARTS) != honest, axis=-1) for name, suspect in SUSPECTS.items()}
    is_alone = sum(map(np.asarray, differs.values()), np.zeros(len(rows), int)) == 1
    return {name for name, convicts in differs.items() if np.any(convicts & is_alone)}


def beside_ties(s):
    """Return the elements that a rounding mistake can move under a scale: ties and their neighbours."""
    ties = E2M1_TIES * s
    return np.concatenate([np.nextafter(ties, np.float32(0)), ties, np.nextafter(ties, np.float32(np.inf))])


def groups(columns):
    """Return one group for each row, which begins with the given elements and goes on with zeros."""
    return np.pad(np.asarray(columns, np.float32), ((0, 0), (0, 16 - np.shape(columns)[1])))


def test_zeros_convict_zero_to_nan():
    assert convicted_alone(groups([[0, 0]])) == {"zero_to_nan"}


def test_one_element_convicts_half_away_or_swapped_nibbles(rng):
    magnitudes = np.float32(2.0 ** rng.uniform(-20, 12, 100_000))
    smallest = np.concatenate([beside_ties(np.float32(2.0**-9)), np.arange(1, 13) * 2.0**-10])
    elements = np.concatenate([magnitudes, smallest, *map(beside_ties, SCALES)])
    columns = np.stack([elements, np.zeros_like(elements)], axis=1)
    assert convicted_alone(groups(columns)) == {"half_away", "swapped_nibbles"}
    assert convicted_alone(groups(columns[:, ::-1])) == {"half_away", "swapped_nibbles"}


def test_two_elements_convict_lost_subnormal():
    assert convicted_alone(groups([[2.0**-10, 2.0**-10]])) == {"lost_subnormal"}


@pytest.mark.parametrize("s", SCALES)
def test_three_elements_do_not_convict_reciprocal_alone(s):
    elements = np.append(beside_ties(s)[3:], 6 * s)
    triples = np.array(list(itertools.product(elements, repeat=3)), np.float32)
    for gap in range(4):
        assert "reciprocal" not in convicted_alone(groups(np.insert(triples, gap, 0, axis=1)))


def test_four_elements_convict_reciprocal():
    beside = np.nextafter(np.float32(1.75 * 3.5), np.float32(0))
    assert convicted_alone(groups([[10.5, 10.5, beside, beside]])) == {"reciprocal"}
