"""Each suspect has its one mistake and no other, and an input convicts it alone."""

from itertools import combinations_with_replacement

import fp4kv
import numpy as np
import pytest
from labkit.expect import expect_values
from labkit.suspects.lab02 import SUSPECTS, Parts, convicted, round_trip

PARTS = Parts(fp4kv.quantise_e2m1, fp4kv.encode_e2m1, fp4kv.pack_nibbles, fp4kv.unpack_nibbles, fp4kv.dequantise)
SMALLEST = 2.0**-9  # the smallest scale: what is far below it is measured in it
SCALE = np.float32(7 * 2.0**-9)  # its float32 reciprocal is above 1/s, so products come out too large
BELOW_TIE = np.nextafter(np.float32(3.5) * SCALE, np.float32(0))


def group(*values: float) -> np.ndarray:
    """One group of 16: the given values, then zeros."""
    return np.float32([*values, *[0.0] * (16 - len(values))])


EVIDENCE = {
    "half_away": group(SMALLEST / 4),
    "lost_subnormal": group(SMALLEST / 2, SMALLEST / 2),
    "swapped_nibbles": group(1),
    "zero_to_nan": group(),
    "reciprocal": group(6 * SCALE, 6 * SCALE, BELOW_TIE, BELOW_TIE),
}


def test_the_honest_round_trip_is_the_library() -> None:
    x = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    expect_values(round_trip(x, PARTS), fp4kv.dequantise(fp4kv.quantise_e2m1(x)), given=x)


@pytest.mark.parametrize("name", SUSPECTS)
def test_an_input_convicts_each_suspect_alone(name: str) -> None:
    assert convicted(EVIDENCE[name], PARTS) == [name]


def test_the_documented_sizes_are_the_smallest() -> None:
    # Fewer elements cannot do it: a lone element whose code is not zero convicts the swap as well, and the reciprocal
    # goes wrong only beside a tie, which needs another element to set the scale; so both come in equal pairs.
    sizes = {name: np.count_nonzero(x) for name, x in EVIDENCE.items()}
    assert sizes == {"half_away": 1, "lost_subnormal": 2, "swapped_nibbles": 1, "zero_to_nan": 0, "reciprocal": 4}
    candidates = [0.0, SMALLEST / 4, SMALLEST / 2, 5 * SMALLEST, float(6 * SCALE), float(BELOW_TIE), 1.0]
    for values in combinations_with_replacement(candidates, 3):
        x = group(*values)
        if np.count_nonzero(x) < 4:
            assert convicted(x, PARTS) != ["reciprocal"], x
        if np.count_nonzero(x) < 2:
            assert convicted(x, PARTS) != ["lost_subnormal"], x


def test_the_mistakes_are_the_ones_described() -> None:
    results = {name: SUSPECTS[name](x, PARTS) for name, x in EVIDENCE.items()}
    assert results["half_away"][0] == SMALLEST / 2
    assert results["lost_subnormal"][:2].tolist() == [0, 0]
    assert results["swapped_nibbles"][:2].tolist() == [0, round_trip(group(1), PARTS)[0]]
    assert np.isnan(results["zero_to_nan"]).all()
    assert results["reciprocal"][2] == 4 * SCALE
    assert round_trip(EVIDENCE["reciprocal"], PARTS)[2] == 3 * SCALE


@pytest.mark.parametrize("tie", [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
def test_half_away_moves_ties_and_nothing_beside_them(tie: float) -> None:
    tie = np.float32(tie)
    neighbours = [np.nextafter(tie, np.float32(9)), np.nextafter(tie, np.float32(0))]
    x = group(6, *neighbours, *[-value for value in neighbours])
    expect_values(SUSPECTS["half_away"](x, PARTS), round_trip(x, PARTS), given=x)
    larger = np.float32([0.5, 1, 1.5, 2, 3, 4, 6])[np.float32([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]) == tie]
    assert SUSPECTS["half_away"](group(6, tie, -tie), PARTS)[1:3].tolist() == [larger[0], -larger[0]]


def test_a_group_of_zeros_among_others_is_the_only_one_to_turn_nan() -> None:
    x = np.stack([group(1, 2), group(), group(3)])
    bad = np.isnan(SUSPECTS["zero_to_nan"](x, PARTS))
    assert bad.all(axis=1).tolist() == bad.any(axis=1).tolist() == [False, True, False]


def test_suspects_leave_their_input_alone() -> None:
    x = group(6, 1.25, -0.25)
    before = x.copy()
    convicted(x, PARTS)
    expect_values(x, before, given="the input after the calls")
