"""Records in a play: where they stand, what is asked, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.replay.hybrid_task import (
    FIRST_KEY,
    FIRST_VALUE,
    N_BYTES,
    VOCABULARY,
    play,
    records_task,
)


@st.composite
def sizes(draw):
    records = draw(st.integers(0, 512))
    tokens = draw(st.integers(max(4, 4 * records), 3000))
    return draw(st.integers(0, 2**32)), tokens, records


@given(sizes())
def test_every_question_is_answered_by_the_one_record_before_it(size):
    seed, n, records = size
    task = records_task(seed, n, records)
    keys = task.tokens[task.questions]
    assert task.tokens.shape == (n,) and len(task.questions) == len(np.unique(keys)) == records
    assert ((keys >= FIRST_KEY) & (keys < FIRST_VALUE)).all()
    assert ((task.answers >= FIRST_VALUE) & (task.answers < VOCABULARY)).all()
    for key, question, answer, source in zip(keys, task.questions, task.answers, task.sources, strict=True):
        assert np.flatnonzero(task.tokens == key).tolist() == [source - 1, question]
        assert task.tokens[source] == task.tokens[question + 1] == answer
        assert source < n - 2 * records <= question


@given(sizes())
def test_what_is_no_record_is_the_play(size):
    seed, n, records = size
    task = records_task(seed, n, records)
    gaps = task.tokens < N_BYTES
    assert np.count_nonzero(~gaps) == 4 * records
    text = play()
    starts = np.arange(len(text) - n + 1)
    for position in np.flatnonzero(gaps):
        starts = starts[text[starts + position] == task.tokens[position]]
    assert len(starts) >= 1


def test_text_positions_come_before_a_byte_of_text():
    task = records_task(seed=3, tokens=64, records=4)
    expected = [t for t in range(63) if task.tokens[t + 1] < N_BYTES]
    assert task.text_positions.tolist() == expected


def test_same_seed_same_task_and_another_seed_another():
    first, again, other = (records_task(seed, 256, 16) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.tokens, other.tokens)


@pytest.mark.parametrize(("tokens", "records"), [(63, 16), (4096, 513), (64, -1)])
def test_records_that_do_not_fit_are_refused(tokens, records):
    with pytest.raises(ValueError, match=r"records: expected 0 to \d+ in \d+ tokens, got -?\d+"):
        records_task(seed=0, tokens=tokens, records=records)


@pytest.mark.parametrize("tokens", [0, 3, 10**6])
def test_lengths_that_the_play_does_not_have_are_refused(tokens):
    with pytest.raises(ValueError, match=f"tokens: expected 4 to {len(play())}, got {tokens}"):
        records_task(seed=0, tokens=tokens, records=0)
