"""Hadamard's rotation: against scipy and a loop, as a rotation, and around a cache in E2M1."""

import inspect
import itertools

import numpy as np
import pytest
import scipy.linalg
import torch
from fp4kv import attend, attend_rotated, decode_e2m1, dequantise, quantise_e2m1, rotate_hadamard
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labkit.expect import expect_close, expect_values

WIDTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
HALF_ULP = 2.0**-53
VECTORS = st.sampled_from(WIDTHS[:7]).flatmap(
    lambda width: hnp.arrays(np.float64, (2, width), elements=st.floats(-1e6, 1e6))
)


def matrix(width: int) -> np.ndarray:
    """Scipy's matrix, orthonormal."""
    return scipy.linalg.hadamard(width).astype(np.float64) / np.sqrt(width)


def rounding(x: np.ndarray) -> np.ndarray:
    """What two rotations may differ by, each of D roundings at most, and of √D and a quotient, of Σ|x| / √D."""
    width = x.shape[-1]
    return 2 * (width + 2) * HALF_ULP * np.abs(x).sum(axis=-1, keepdims=True) / np.sqrt(width)


@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_the_matrix_of_scipy(width: int, rng: np.random.Generator) -> None:
    expect_values(rotate_hadamard(np.eye(width)) * np.sqrt(width), matrix(width) * np.sqrt(width), given=width)
    x = rng.normal(size=(3, 5, width))
    expect_close(rotate_hadamard(x), x @ matrix(width).T, rounding(x), given=x)


@pytest.mark.parametrize("width", WIDTHS[:6])
def test_it_is_the_sum_that_the_docstring_says(width: int, rng: np.random.Generator) -> None:
    x = rng.normal(size=width)
    expected = np.zeros(width)
    for c, i in itertools.product(range(width), range(width)):
        expected[c] += (-1) ** (c & i).bit_count() * x[i] / np.sqrt(width)
    expect_close(rotate_hadamard(x), expected, rounding(x), given=x)


@given(x=VECTORS)
def test_it_is_its_own_inverse_and_changes_no_product(x: np.ndarray) -> None:
    rotated = rotate_hadamard(x)
    twice = np.abs(rotate_hadamard(rotated) - x)
    width = x.shape[1]
    assert (twice <= rounding(x) * np.sqrt(width) + rounding(rotated)).all(), x
    # two rotations, each off by `rounding` in each of D elements, and two sums of D products
    size = np.abs(x).sum(axis=-1).prod()
    assert abs(rotated[0] @ rotated[1] - x[0] @ x[1]) <= 6 * (width + 2) * HALF_ULP * size, x


@pytest.mark.parametrize("width", [1, 4, 16, 64])
@given(seed=st.integers(0, 2**32 - 1))
def test_logits_of_whole_numbers_stay_the_same_to_the_bit(width: int, seed: int) -> None:
    # √D is a power of two: every sum, quotient and product is exact in float64
    q, keys = np.random.default_rng(seed).integers(-1000, 1000, (2, 3, width)).astype(np.float64)
    assert np.array_equal(rotate_hadamard(q) @ rotate_hadamard(keys).T, q @ keys.T)


def test_a_hundred_among_ones_is_spread_quantised_and_brought_back() -> None:
    x = np.float64([100, *[1] * 15])
    rotated = rotate_hadamard(x)
    expect_values(rotated, np.float64([28.75, *[24.75] * 15]), given=x)
    decoded = dequantise(quantise_e2m1(rotated))
    expect_values(decoded, np.float32([30, *[20] * 15]), given=rotated)  # 28.75/6 goes to 5; 4.95 lies nearest to 4
    expect_values(rotate_hadamard(decoded), np.float64([82.5, *[2.5] * 15]), given=decoded)


@pytest.mark.parametrize("width", [16, 64, 256])
def test_a_lone_outlier_becomes_even_and_a_constant_becomes_an_outlier(width: int) -> None:
    lone = np.zeros(width)
    lone[3] = 8.0
    expect_values(np.abs(rotate_hadamard(lone)), np.full(width, 8 / np.sqrt(width)), given=lone)
    flat = np.float64([8 * np.sqrt(width), *[0] * (width - 1)])
    expect_values(rotate_hadamard(np.full(width, 8.0)), flat, given=f"{width} times 8")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_the_result_is_float64_whatever_comes(dtype: type) -> None:
    x = np.array([[60000, 0, 0, 0], [1, 2, 3, 4]]).astype(dtype)
    expected = np.float64([[x[0, 0] / 2] * 4, [5, -1, -2, 0]])
    expect_values(inspect.unwrap(rotate_hadamard)(x), expected, given=x)


def test_arrays_of_any_shape_rotate_along_the_last_axis(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, 4, 8))
    expect_values(rotate_hadamard(x)[1, 2, 3], rotate_hadamard(x[1, 2, 3]), given=x)
    expect_values(rotate_hadamard(x[:, ::-1].swapaxes(0, 2)), rotate_hadamard(x)[:, ::-1].swapaxes(0, 2), given=x)
    expect_values(rotate_hadamard(np.zeros((3, 0, 8))), np.zeros((3, 0, 8)), given="no vectors")


@pytest.mark.parametrize("shape", [(), (0,), (3,), (16, 24), (4, 0)])
def test_widths_that_are_no_power_of_two_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="x: expected a last axis whose length is a power of two, got shape"):
        inspect.unwrap(rotate_hadamard)(np.ones(shape))


def test_arguments_are_left_alone_and_never_returned(rng: np.random.Generator) -> None:
    x, one = rng.normal(size=(3, 16)), np.ones((2, 1))
    before = x.copy()
    rotate_hadamard(x)
    expect_values(x, before, given="the input after the call")
    assert not np.shares_memory(rotate_hadamard(one), one)


def quantised(x: np.ndarray) -> torch.Tensor:
    """What the cache holds, by scipy's matrix of ones: sums of quarters are exact, and are divided once."""
    width = x.shape[-1]
    rotated = (x.astype(np.float64) @ scipy.linalg.hadamard(width)) / np.sqrt(width)
    return torch.tensor(dequantise(quantise_e2m1(rotated)).astype(np.float64))[None]


@pytest.mark.parametrize(("width", "value_width"), [(16, 16), (64, 64), (128, 32), (32, 128)])
def test_attention_agrees_with_torch_over_the_rotated_cache(
    width: int, value_width: int, rng: np.random.Generator
) -> None:
    q, keys = (rng.integers(-12, 13, (n, width)).astype(np.float32) / 4 for n in (5, 40))
    values = rng.integers(-12, 13, (40, value_width)).astype(np.float32) / 4
    turned = torch.tensor(q.astype(np.float64) @ matrix(width).T)[None]
    output = torch.nn.functional.scaled_dot_product_attention(turned, quantised(keys), quantised(values))
    expected = output[0].numpy() @ matrix(value_width)
    # float64 throughout: logits of at most 3 · 3 · √D and a softmax, some hundred roundings of numbers below 100
    expect_close(attend_rotated(q, keys, values), expected, 1e-11, given=(width, value_width))


def test_a_cache_that_e2m1_holds_exactly_gives_plain_attention(rng: np.random.Generator) -> None:
    # rotated values on the grid, 6 in every group: scale 1, exact; √16 and √64 are powers of two
    for width in (16, 64):
        grid = decode_e2m1(rng.integers(0, 16, (2, 24, width)).astype(np.uint8))
        grid[..., ::16] = 6
        keys, values = rotate_hadamard(grid).astype(np.float32)
        q = rng.normal(size=(3, width)).astype(np.float32)
        expect_close(attend_rotated(q, keys, values), attend(q, keys, values), 1e-11, given=width)


def test_one_token_has_all_the_weight_and_its_value_comes_back() -> None:
    token = np.float32([[100, *[1] * 15]])
    expect_close(attend_rotated(token, token, token), np.float64([[82.5, *[2.5] * 15]]), 1e-12, given=token)


@pytest.mark.parametrize(("keys", "values"), [(24, 16), (16, 48), (8, 16)])
def test_widths_that_cannot_be_rotated_and_quantised_are_refused(keys: int, values: int) -> None:
    with pytest.raises(ValueError, match="x: expected a last axis"):
        attend_rotated(np.ones((1, keys), np.float32), np.ones((2, keys), np.float32), np.ones((2, values), np.float32))
