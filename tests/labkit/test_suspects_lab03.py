"""Each faulty attention has its one mistake and no other, and an exhibit convicts it alone."""

import fp4kv
import ml_dtypes
import numpy as np
import pytest
from labkit.expect import expect_close
from labkit.suspects.lab03 import (
    FLOAT16_LIMIT,
    LOW_LOGIT,
    SUSPECTS,
    Exhibit,
    attend_cached,
    convicted,
)

WIDTH = 16
OTHER_ORDER = 1e-12
"""Outputs of order 1 summed in another order: 64 terms, each rounded by 2^-53, are 1e-14."""


def rows(*first: float) -> np.ndarray:
    """Rows of one group that begin with the given elements and go on with zeros."""
    array = np.zeros((len(first), WIDTH), np.float32)
    array[:, 0] = first
    return array


def seen(*flags: bool) -> np.ndarray:
    return np.array([flags])


def random_exhibit(seed: int, size: float = 1.0) -> Exhibit:
    rng = np.random.default_rng(seed)
    q, keys, values = (np.float32(rng.normal(size=(n, 32))) for n in (3, 7, 7))
    return Exhibit(q * np.float32(size), keys, values, np.tril(np.ones((3, 7), bool), 4))


def test_the_honest_attention_is_the_library() -> None:
    exhibit = random_exhibit(0)
    keys, values = (fp4kv.dequantise(fp4kv.quantise_e2m1(x)) for x in exhibit[1:3])
    expected = fp4kv.attend(exhibit.q, keys, values, exhibit.is_visible)
    expect_close(attend_cached(exhibit, fp4kv.attention_weights), expected, OTHER_ORDER, given="a random exhibit")


@pytest.mark.parametrize("name", ["narrow_sum", "low_mask"])
@pytest.mark.parametrize("seed", range(5))
def test_ordinary_numbers_convict_only_double_rounding(name: str, seed: int) -> None:
    assert name not in convicted(random_exhibit(seed), fp4kv.attention_weights)


def test_double_rounding_rounds_through_bfloat16() -> None:
    exhibit = random_exhibit(1)
    narrow = [x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in exhibit[1:3]]
    expected = attend_cached(exhibit._replace(keys=narrow[0], values=narrow[1]), fp4kv.attention_weights)
    got = SUSPECTS["double_rounding"](exhibit, fp4kv.attention_weights)
    expect_close(got, expected, 0, given="a random exhibit")


@pytest.mark.parametrize(("sign", "product"), [(1, 65519.0), (-1, 65519.0), (1, 65520.0), (-1, 65520.0)])
def test_narrow_sum_overflows_where_fp16_does(sign: int, product: float) -> None:
    exhibit = Exhibit(rows(sign * product / 6), rows(6), rows(6), seen(True))
    with np.errstate(over="ignore"):
        overflows = bool(np.isinf(np.float16(product)))
    assert overflows == (product >= FLOAT16_LIMIT)
    assert convicted(exhibit, fp4kv.attention_weights) == (["narrow_sum"] if overflows else [])


def test_narrow_sum_overflows_on_the_way_too() -> None:
    q, keys = rows(0), rows(0)
    q[0, :3], keys[0, :3] = (8000, 8000, -8000), 6
    assert convicted(Exhibit(q, keys, rows(6), seen(True)), fp4kv.attention_weights) == ["narrow_sum"]


@pytest.mark.parametrize(("logit", "is_convicted"), [(-9000.0, False), (LOW_LOGIT, True), (-11_000.0, True)])
def test_low_mask_shows_hidden_tokens_below_its_logit(logit: float, is_convicted: bool) -> None:
    exhibit = Exhibit(rows(logit * 4 / 6), rows(6, 0), rows(6, 0), seen(True, False))
    assert convicted(exhibit, fp4kv.attention_weights) == (["low_mask"] if is_convicted else [])


def test_wide_keys_under_a_low_logit_convict_two() -> None:
    width = 64  # the logit is q·k / 8: at -10000 the sum is -80000
    q, keys, values = (np.zeros((n, width), np.float32) for n in (1, 2, 2))
    q[0, 0], keys[0, 0], values[0, 0] = -14_000, 6, 6
    assert convicted(Exhibit(q, keys, values, seen(True, False)), fp4kv.attention_weights) == ["narrow_sum", "low_mask"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"keys": np.zeros((6, 32), np.float32)}, "shapes"),
        ({"q": np.zeros((3, 16), np.float32)}, "shapes"),
        ({"is_visible": np.ones((3, 6), bool)}, "shapes"),
        ({"q": np.zeros(32, np.float32)}, "shapes"),
        ({"q": np.full((3, 32), np.nan, np.float32)}, "finite"),
        ({"is_visible": np.zeros((3, 7), bool)}, "sees none"),
    ],
)
def test_an_exhibit_that_does_not_fit_is_refused(changed: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convicted(random_exhibit(0)._replace(**changed), fp4kv.attention_weights)


def test_suspects_leave_their_exhibit_alone() -> None:
    exhibit = random_exhibit(2)
    before = [part.copy() for part in exhibit]
    convicted(exhibit, fp4kv.attention_weights)
    for part, kept in zip(exhibit, before, strict=True):
        np.testing.assert_array_equal(part, kept)
