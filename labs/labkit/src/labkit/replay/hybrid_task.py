"""Recall in text: (key, value) records stand in a play, and at the end every key is asked.

    task = records_task(seed=1, tokens=512, records=32)
    task.tokens                     bytes of text, in it 32 times a key and its value; at the end 32 questions
    task.questions, task.answers    the logits at a question should be largest at its answer

A token below 256 is a byte of text, then come the keys, then the values. A key stands once in the text, at an even
position, its value after it; the last 2 · records tokens are all keys in another order, each with its answer after it.
"""

from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

N_BYTES: Final = 256
N_KEYS: Final = 512
N_VALUES: Final = 64
FIRST_KEY: Final = N_BYTES
FIRST_VALUE: Final = FIRST_KEY + N_KEYS
VOCABULARY: Final = FIRST_VALUE + N_VALUES
TOKENS_PER_RECORD: Final = 4
"""A key and a value in the text, a key and a value in the questions."""


class RecordsTask(NamedTuple):
    """Tokens to read, and what must be recalled of them.

    `questions` are the positions of the asked keys, `answers` the tokens that follow there, and `sources` the
    positions of the values where they first stand: questions - sources is how far back one must look.
    """

    tokens: Int64[np.ndarray, " n"]
    questions: Int64[np.ndarray, " records"]
    answers: Int64[np.ndarray, " records"]
    sources: Int64[np.ndarray, " records"]

    @property
    def text_positions(self) -> Int64[np.ndarray, " m"]:
        """Return the positions before a byte of text: where the next token is one that a reader of plays expects."""
        return np.flatnonzero(self.tokens[1:] < N_BYTES)


@cache
def play() -> UInt8[np.ndarray, " n"]:
    """Return the bytes of the play that fills the gaps, which the trained network has never read."""
    return np.frombuffer((files("labkit") / "data" / "timon_of_athens_excerpt.txt").read_bytes(), np.uint8)


def records_task(seed: int, tokens: int, records: int) -> RecordsTask:
    """Return so many tokens of the play with so many records in it, all of them asked at the end.

    Raises
    ------
    ValueError
        If there are more than 512 records, or more than a quarter of the tokens, or more tokens than the play has.

    >>> task = records_task(seed=1, tokens=128, records=8)
    >>> bool((task.tokens[task.questions + 1] == task.answers).all())
    True
    """
    text = play()
    if not TOKENS_PER_RECORD <= tokens <= len(text):
        raise ValueError(f"tokens: expected {TOKENS_PER_RECORD} to {len(text)}, got {tokens}")
    rng = np.random.default_rng(seed)
    start = rng.integers(len(text) - tokens + 1)
    return place_records(text[start : start + tokens], records, rng)


def place_records(text: UInt8[np.ndarray, " n"], records: int, rng: np.random.Generator) -> RecordsTask:
    """Return the text with records in it and questions in place of its end."""
    most = min(N_KEYS, len(text) // TOKENS_PER_RECORD)
    if not 0 <= records <= most:
        raise ValueError(f"records: expected 0 to {most} in {len(text)} tokens, got {records}")
    tokens = text.astype(np.int64)
    first_question = len(text) - 2 * records
    slots = 2 * rng.permutation(first_question // 2)[:records]
    keys = FIRST_KEY + rng.permutation(N_KEYS)[:records]
    values = FIRST_VALUE + rng.integers(N_VALUES, size=records)
    tokens[slots], tokens[slots + 1] = keys, values

    order = rng.permutation(records)
    questions = first_question + 2 * np.arange(records)
    tokens[questions], tokens[questions + 1] = keys[order], values[order]
    return RecordsTask(tokens, questions, values[order], slots[order] + 1)
