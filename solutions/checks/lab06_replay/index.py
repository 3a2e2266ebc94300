"""Checks of `index_topk`, each with scores in which the slips of the others do not show."""

from typing import Any

import numpy as np
from labkit.expect import expect_raises, expect_values

from autograder.checks import Registry

from .untouched import expect_untouched

checks = Registry()
check = checks.check


def _expect(student: Any, scores: Any, block_tokens: int, top_blocks: int, expected: Any) -> None:
    """Expect blocks for scores of heads × tokens: with unit queries a key holds the score of each head."""
    scores = np.atleast_2d(np.asarray(scores, float))
    given = {"scores": scores, "block_tokens": block_tokens, "top_blocks": top_blocks}
    got = student.index_topk(np.eye(len(scores)), scores.T.copy(), block_tokens, top_blocks)
    expect_values(got, np.asarray(expected), given=given, any_width=True)


def _apart(cases: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return different whole numbers, half of them below 0."""
    size = int(np.prod(shape))
    return cases.rng.permutation(np.arange(-(size // 2), size - size // 2)).reshape(shape).astype(float)


@check(
    "index_topk-blocks",
    points=1,
    catches="scores a block by its mean, its sum, or its first token, or gives the worst first",
    hint="one good token is enough: the largest score in the block, then the largest blocks",
    reveal=True,
)
def a_block_is_as_good_as_its_best_token(student: Any, cases: Any) -> None:
    """A block scores as its best token does, and the best block comes first."""
    for block_tokens, n_blocks, top_blocks in ((2, 5, 2), (4, 8, 3), (8, 4, 4)):
        scores = _apart(cases, (n_blocks, block_tokens))
        best = np.argsort(-scores.max(axis=1))[:top_blocks]
        _expect(student, scores.ravel(), block_tokens, top_blocks, best)


@check(
    "index_topk-heads",
    points=1,
    catches="adds up or averages over heads, or lets the first head choose",
    hint="a token that one head wants must be read: the largest score over heads",
)
def one_head_is_enough(student: Any, cases: Any) -> None:
    """A token scores the largest product over the query heads."""
    for heads, n_tokens, top_blocks in ((2, 6, 3), (4, 12, 4)):
        scores = _apart(cases, (heads, n_tokens))
        _expect(student, scores, 1, top_blocks, np.argsort(-scores.max(axis=0))[:top_blocks])
    for _ in range(2):  # not only scores that we choose: of heads of several sizes, and most of them below 1
        q, keys = cases.rng.normal(size=(4, 32)), cases.rng.normal(size=(64, 32))
        q *= np.array([[0.02], [0.05], [0.03], [0.01]])
        best = np.argsort(-(q @ keys.T).max(axis=0))[:5]
        got, after = student.index_topk.and_arguments(q, keys, 1, 5)
        expect_values(got, best, given="4 Gaussian queries, 64 keys of width 32", any_width=True)
        expect_untouched(after, [q, keys, 1, 5], "q or index_keys")


@check(
    "index_topk-ties",
    points=1,
    catches="puts the later of two equal blocks first",
    hint="turning round an order from worst to best turns round equal blocks, too",
)
def the_earlier_of_equal_blocks_comes_first(student: Any, cases: Any) -> None:
    """Of equal blocks the earlier comes first."""
    for n_blocks in (6, 40):
        scores = cases.rng.integers(0, 3, n_blocks).astype(float)
        _expect(student, scores, 1, n_blocks, sorted(range(n_blocks), key=lambda block: -scores[block]))


@check(
    "index_topk-padding",
    points=1,
    catches="leaves out a short last block, fills it up with zeros, or returns fewer numbers than asked",
    hint="what is missing scores minus infinity, and numbers of blocks that are not there are -1",
)
def missing_blocks_are_minus_one(student: Any, cases: Any) -> None:
    """The last block may be short; where there are fewer blocks than asked for, the rest is -1."""
    for n_tokens, block_tokens, top_blocks in ((5, 2, 3), (9, 4, 6), (1, 8, 2)):
        n_blocks = -(-n_tokens // block_tokens)
        ranks = 1.0 + np.arange(n_blocks)[:: -1 if n_tokens == 9 else 1]  # of 9 the short one is best, else worst
        scores = -np.repeat(ranks, block_tokens)[:n_tokens]  # all below 0
        blocks = np.argsort(-scores[::block_tokens])[:top_blocks]
        expected = np.concatenate([blocks, np.full(top_blocks - len(blocks), -1)])
        _expect(student, scores, block_tokens, top_blocks, expected)


@check(
    "index_topk-refuses",
    points=1,
    catches="cuts the context into blocks of nothing, picks none, or sorts NaN",
    hint="raise ValueError for block_tokens or top_blocks below 1, no head, and NaN or infinity in q or the keys",
)
def no_block_and_no_choice_are_refused(student: Any, cases: Any) -> None:
    """Blocks of no tokens, no blocks to pick, no heads, NaN and infinity are refused."""
    q, keys = np.eye(2), np.float64(cases.rng.normal(size=(6, 2)))
    student.index_topk(q, keys, 1, 1)  # these are not
    for block_tokens, top_blocks in ((0, 1), (-2, 1), (2, 0), (2, -1)):
        asked = (block_tokens, top_blocks)
        given = f"block_tokens, top_blocks = {asked}"
        expect_raises(ValueError, lambda a=asked: student.index_topk(q, keys, *a), given=given)
    expect_raises(ValueError, lambda: student.index_topk(q[:0], keys, 2, 1), given="no query head")
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = keys.copy()
        spoilt[int(cases.rng.integers(6)), 1] = bad
        expect_raises(ValueError, lambda k=spoilt: student.index_topk(q, k, 2, 1), given=f"a key with {bad}")
        expect_raises(
            ValueError, lambda b=bad: student.index_topk(np.full((2, 2), b), keys, 2, 1), given=f"a query with {bad}"
        )
