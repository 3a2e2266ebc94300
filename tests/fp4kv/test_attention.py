"""Attention against PyTorch's and SciPy's, its laws, the sweep over schemes, and the rank of a span."""

import inspect

import numpy as np
import pytest
import torch
from fp4kv import attend, attention_error_sweep, attention_weights, span_rank
from hypothesis import given
from hypothesis import strategies as st
from labkit import tensors
from labkit.expect import expect_close, expect_values
from labkit.schemes import SCHEMES, Placement
from scipy.special import softmax
from torch.nn.functional import scaled_dot_product_attention

SEEDS = st.integers(0, 2**32 - 1)
# Logits below 20, of at most 128 products, then exponentials and sums of them: 1000 roundings of 20 · 2^-53.
ROUNDING = 2e-12
SHAPES = [((), 1, 1), ((), 5, 7), ((3,), 4, 300), ((2, 3), 1, 33)]


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, np.float64))


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(("heads", "n_queries", "n_tokens"), SHAPES)
@pytest.mark.parametrize("is_masked", [False, True])
def test_outputs_are_those_of_torch(heads, n_queries: int, n_tokens: int, is_masked: bool, rng) -> None:
    q, keys = normal(rng, *heads, n_queries, 64), normal(rng, *heads, n_tokens, 64)
    values = normal(rng, *heads, n_tokens, 48)
    is_visible = None
    if is_masked:
        is_visible = rng.random((n_queries, n_tokens)) < 0.5
        is_visible[:, -1] = True
    mask = None if is_visible is None else torch.from_numpy(is_visible)
    expected = scaled_dot_product_attention(tensor(q), tensor(keys), tensor(values), attn_mask=mask)
    expect_close(attend(q, keys, values, is_visible), expected.numpy(), ROUNDING, given=(heads, n_queries, n_tokens))


def test_causal_outputs_are_those_of_torch(rng: np.random.Generator) -> None:
    q, keys, values = normal(rng, 3, 2, 40, 64)
    expected = scaled_dot_product_attention(tensor(q), tensor(keys), tensor(values), is_causal=True)
    is_visible = np.tri(40, dtype=bool)
    expect_close(attend(q, keys, values, is_visible), expected.numpy(), ROUNDING, given="causal")


def test_grouped_queries_of_a_real_layer_are_those_of_torch() -> None:
    # Nine query heads read three key heads: repeated here, expanded by PyTorch there.
    q, keys, values = (
        load(10).swapaxes(0, 1) for load in (tensors.load_queries, tensors.load_keys, tensors.load_values)
    )
    is_visible = np.tri(512, dtype=bool)[-64:]
    mask = torch.from_numpy(is_visible)
    theirs = scaled_dot_product_attention(tensor(q), tensor(keys), tensor(values), attn_mask=mask, enable_gqa=True)
    ours = attend(q, keys.repeat(3, axis=0), values.repeat(3, axis=0), is_visible)
    expect_close(ours, theirs.numpy(), 10 * ROUNDING, given="layer 10, whose logits reach 30")


@given(seed=SEEDS, size=st.floats(0, 1e18))
def test_weights_are_scipys_softmax_however_large_the_logits(seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    q, keys = normal(rng, 2, 16) * np.float32(size), normal(rng, 5, 16) * np.float32(size)
    logits = q.astype(np.float64) @ keys.astype(np.float64).T / np.sqrt(16)
    expect_close(attention_weights(q, keys), softmax(logits, axis=-1), ROUNDING, given=(q, keys))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_everything_is_computed_in_float64(dtype: type, rng: np.random.Generator) -> None:
    q, keys, values = (normal(rng, 4, 32).astype(dtype) for _ in range(3))
    expected = attend(*(x.astype(np.float64) for x in (q, keys, values)))
    assert attention_weights(q, keys).dtype == attend(q, keys, values).dtype == np.float64
    expect_values(attend(q, keys, values), expected, given=dtype)


def test_the_largest_float32_logits_are_no_trouble() -> None:
    # Their products, 1e77 · 128, are far inside float64; a warning would fail the test.
    largest = np.finfo(np.float32).max
    q, keys = np.full((1, 128), largest), np.stack([np.full(128, largest), np.full(128, -largest)])
    expect_values(attention_weights(q, keys), np.array([[1.0, 0.0]]), given="the largest float32")


@given(seed=SEEDS)
def test_a_vector_added_to_every_key_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, keys, shift = rng.normal(size=(2, 16)), rng.normal(size=(7, 16)), rng.normal(size=16)
    expect_close(attention_weights(q, keys + shift), attention_weights(q, keys), ROUNDING, given=seed)


@given(seed=SEEDS)
def test_the_order_of_tokens_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, keys, values = rng.normal(size=(2, 16)), rng.normal(size=(7, 16)), rng.normal(size=(7, 3))
    order = rng.permutation(7)
    expect_close(attend(q, keys[order], values[order]), attend(q, keys, values), ROUNDING, given=order)


@given(seed=SEEDS, n_hidden=st.integers(1, 6))
def test_hidden_keys_count_as_little_as_missing_ones(seed: int, n_hidden: int) -> None:
    rng = np.random.default_rng(seed)
    q, keys, values = rng.normal(size=(2, 16)), rng.normal(size=(7, 16)) * 1e6, rng.normal(size=(7, 3))
    keys[:n_hidden] = np.nan if seed % 2 else 1e30 * q[0]
    is_visible = np.broadcast_to(np.arange(7) >= n_hidden, (2, 7))
    weights = attention_weights(q, keys, is_visible)
    assert (weights[:, :n_hidden] == 0).all()
    expect_close(weights[:, n_hidden:], attention_weights(q, keys[n_hidden:]), ROUNDING, given=seed)
    expect_close(attend(q, keys, values, is_visible), attend(q, keys[n_hidden:], values[n_hidden:]), 1e-11, given=seed)


@pytest.mark.parametrize("function", [attention_weights, attend])
def test_a_blind_query_is_named(function) -> None:
    x, is_visible = np.ones((4, 8)), np.ones((4, 4), bool)
    is_visible[[2, 3]] = False
    arguments = (x, x) if function is attention_weights else (x, x, x)
    with pytest.raises(ValueError, match="is_visible: expected a key for every query, got none for query 2"):
        function(*arguments, is_visible)


def test_sweep_is_attention_over_each_cache(rng: np.random.Generator) -> None:
    q, keys, values = normal(rng, 2, 3, 32), normal(rng, 2, 50, 32), normal(rng, 2, 50, 64)
    is_visible = np.tri(3, 50, 47, dtype=bool)
    rows = attention_error_sweep(q, keys, values, is_visible)
    assert [row[:3] for row in rows] == [(s.name, p, s.bits_per_element) for s in SCHEMES for p in Placement]

    exact, by_name = attend(q, keys, values, is_visible), {scheme.name: scheme.round_trip for scheme in SCHEMES}
    for row in rows:
        k = keys if row.placement is Placement.VALUES else by_name[row.scheme](keys)
        v = values if row.placement is Placement.KEYS else by_name[row.scheme](values)
        error = np.sqrt(((attend(q, k, v, is_visible) - exact) ** 2).sum() / (exact**2).sum())
        assert row.error == pytest.approx(error, rel=1e-9), row


def test_sweep_of_what_every_scheme_holds_exactly_has_no_error() -> None:
    x = np.zeros((1, 4, 32), np.float32)
    x[..., ::2] = 6
    exact = [row for row in attention_error_sweep(x[:, :1], x, x) if row.scheme not in ("INT8", "INT6", "INT4")]
    assert [row for row in exact if row.error] == []  # 6 is no multiple of 6/127, 6/31, 6/7 as float32 rounds them


def test_sweep_of_a_gaussian_cache_has_larger_errors_with_fewer_bits(rng: np.random.Generator) -> None:
    q, keys, values = normal(rng, 4, 16, 64), normal(rng, 4, 512, 64), normal(rng, 4, 512, 64)
    rows = attention_error_sweep(q, keys, values)
    for placement in Placement:
        errors = {row.scheme: row.error for row in rows if row.placement is placement}
        by_width = [errors[name] for name in ("FP16", "INT8", "INT6", "INT4", "INT3", "INT2")]
        assert by_width == sorted(by_width), placement
    keys_only, values_only, both = (np.array([r.error for r in rows if r.placement is p]) for p in Placement)
    # independent errors add as squares; to first order, which INT2's are beyond
    assert np.hypot(keys_only, values_only)[:-4] == pytest.approx(both[:-4], rel=0.1)


@pytest.mark.parametrize("which", ["keys", "values"])
def test_sweep_refuses_widths_that_32_does_not_divide(which: str) -> None:
    widths = {"keys": 32, "values": 32, which: 48}
    q, keys = np.ones((1, widths["keys"]), np.float32), np.ones((3, widths["keys"]), np.float32)
    with pytest.raises(ValueError, match=r"multiple of 32|divisor of 48"):
        attention_error_sweep(q, keys, np.ones((3, widths["values"]), np.float32))


def test_rank_counts_spans_with_more_mass(rng: np.random.Generator) -> None:
    weights = attention_weights(rng.normal(size=(6, 8)), rng.normal(size=(60, 8)) * 3)
    for span_tokens in (1, 4, 30, 60):
        mass = [
            [float(row[start : start + span_tokens].sum()) for start in range(0, 60, span_tokens)] for row in weights
        ]
        for right in range(60 // span_tokens):
            expected = [sorted(row, reverse=True).index(row[right]) + 1 for row in mass]
            expect_values(span_rank(weights, span_tokens, right), np.array(expected), given=(span_tokens, right))


def test_equal_spans_share_the_better_rank() -> None:
    weights = np.array([[0.25, 0.25, 0.25, 0.25], [0.5, 0.0, 0.0, 0.5]])
    expect_values(span_rank(weights, span_tokens=1, right=3), np.array([1, 1]), given=weights)
    expect_values(span_rank(weights, span_tokens=1, right=1), np.array([1, 3]), given=weights)


@pytest.mark.parametrize(
    ("span_tokens", "right", "message"),
    [
        (4, 0, "span_tokens: expected a divisor of 6 tokens, got 4"),
        (0, 0, "span_tokens: expected a divisor of 6 tokens, got 0"),
        (-2, 0, "span_tokens: expected a divisor of 6 tokens, got -2"),
        (2, 3, "right: expected a span from 0 to 2, got 3"),
        (2, -1, "right: expected a span from 0 to 2, got -1"),
    ],
)
def test_spans_that_are_none_are_refused(span_tokens: int, right: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inspect.unwrap(span_rank)(np.ones((1, 6)), span_tokens, right)
