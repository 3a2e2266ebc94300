"""What later labs are given of lab 3 is what the reference gives, to rounding; and it refuses what that refuses."""

import inspect

import fp4kv
import numpy as np
import pytest
from hypothesis import given as each
from hypothesis import strategies as st
from labkit.expect import expect_close
from labkit.given import lab03

SEEDS = st.integers(0, 2**32 - 1)
# Both compute the same logits; a sum of T logarithms and one of T exponentials differ by T · 2^-53 · (largest logit),
# which the last division takes back: T = 600 numbers below 20, and the logits' own 64 roundings of 20 · 2^-53.
ROUNDING = 2e-12
SHAPES = [((), 1, 1), ((), 5, 7), ((3,), 4, 600), ((2, 3), 1, 33), ((0,), 2, 3)]


@pytest.mark.parametrize(("heads", "n_queries", "n_tokens"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("is_masked", [False, True])
def test_weights_and_outputs_agree(heads, n_queries: int, n_tokens: int, dtype: type, is_masked: bool, rng) -> None:
    q, keys = rng.normal(size=(*heads, n_queries, 32)), rng.normal(size=(*heads, n_tokens, 32))
    values = rng.normal(size=(*heads, n_tokens, 48))
    q, keys, values = (x.astype(dtype) for x in (q, keys, values))
    is_visible = rng.random((n_queries, n_tokens)) < 0.3 if is_masked else None
    if is_visible is not None:
        is_visible[:, 0] = True
    for name, arguments in {"attention_weights": (q, keys), "attend": (q, keys, values)}.items():
        got, expected = (getattr(side, name)(*arguments, is_visible) for side in (lab03, fp4kv))
        expect_close(got, expected, ROUNDING, given=name)


@each(seed=SEEDS, exponent=st.floats(-30, 18))
def test_logits_of_any_size_agree(seed: int, exponent: float) -> None:
    rng = np.random.default_rng(seed)
    q, keys = rng.normal(size=(2, 16)) * 10**exponent, rng.normal(size=(9, 16)) * 10**exponent
    expect_close(lab03.attention_weights(q, keys), fp4kv.attention_weights(q, keys), ROUNDING, given=seed)


def test_hidden_keys_weigh_nothing() -> None:
    keys = np.full((3, 8), 1e30)
    keys[2] = 0
    weights = lab03.attention_weights(np.ones((1, 8)), keys, np.array([[False, False, True]]))
    assert weights.tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("name", lab03.__all__)
def test_a_blind_query_is_refused_alike(name: str) -> None:
    x, is_visible = np.ones((4, 8)), np.ones((4, 4), bool)
    is_visible[[1, 3]] = False
    texts = []
    for side in (lab03, fp4kv):
        with pytest.raises(ValueError, match="none for query 1") as caught:
            getattr(side, name)(*[x] * (2 + (name == "attend")), is_visible)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", lab03.__all__)
def test_signatures_are_the_same(name: str) -> None:
    theirs, ours = (inspect.signature(inspect.unwrap(getattr(side, name))) for side in (fp4kv, lab03))
    assert str(theirs) == str(ours)
