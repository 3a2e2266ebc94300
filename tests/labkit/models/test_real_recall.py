"""Codes asked of a decoder: exact means what greedy decoding would write, and the prompt holds what it asks for."""

import importlib
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from labkit.models.decoder import Layout, logits, run

LAYOUT = Layout(window=6, sinks=2, global_layers=frozenset({1}))
PREFIX, DIGITS = 20, 4


@pytest.fixture
def recall(project, monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(project / "bench"))
    return importlib.import_module("real_recall")


@pytest.fixture
def prompts(project, monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(project / "bench"))
    return importlib.import_module("real_prompts")


def greedy(decoder, tokens: list[int]) -> list[int]:
    """Return the four tokens that greedy decoding writes, each from a run without a cache."""
    written = list(tokens)
    for _ in range(DIGITS):
        hidden, _ = run(decoder, LAYOUT, torch.tensor([written]))
        written.append(int(logits(decoder, hidden[0, -1]).argmax()))
    return written[-DIGITS:]


def asked(prompts, prefix: torch.Tensor, rows: list[list[int]]):
    longest = max(map(len, rows))
    padded = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    return prompts.Prompt(prefix, padded, torch.tensor(list(map(len, rows))), np.zeros(len(rows), bool), 0)


def test_code_is_right_exactly_when_greedy_decoding_writes_it(recall, prompts, random_decoder, random_tokens):
    decoder, prefix = random_decoder(1), random_tokens(2, PREFIX)
    openings = [[3, 1], [4, 1, 5, 9], [2, 6, 5]]
    codes = [greedy(decoder, prefix[0].tolist() + opening) for opening in openings]
    right = [opening + code for opening, code in zip(openings, codes, strict=True)]
    wrong = [[*row[:-4], (row[-4] + 1) % 50, *row[-3:]] for row in right] + [
        [*row[:-1], (row[-1] + 1) % 50] for row in right
    ]
    _, state = run(decoder, LAYOUT, prefix)
    found = recall.answers(decoder, LAYOUT, asked(prompts, prefix, right + wrong), state)
    assert found.is_right.tolist() == [True] * 3 + [False] * 6


def test_log_probability_is_that_of_the_whole_code(recall, prompts, random_decoder, random_tokens):
    decoder, prefix, row = random_decoder(3), random_tokens(4, PREFIX), [7, 8, 1, 2, 3, 4]
    _, state = run(decoder, LAYOUT, prefix)
    found = recall.answers(decoder, LAYOUT, asked(prompts, prefix, [row, [*row[:1], *row]]), state)
    hidden, _ = run(decoder, LAYOUT, torch.tensor([prefix[0].tolist() + row]))
    scores = logits(decoder, hidden[0]).log_softmax(-1)
    expected = sum(float(scores[PREFIX + t - 1, row[t]]) for t in range(2, 6))
    assert found.nats[0] == pytest.approx(expected, rel=1e-12)  # float64, sums of a few hundred terms


def characters(text: str) -> SimpleNamespace:
    """Stand in for a tokenizer: one token a character."""
    return SimpleNamespace(input_ids=[ord(letter) for letter in text])


def text_of(ids: torch.Tensor) -> str:
    return "".join(chr(int(token)) for token in ids if token)


@pytest.mark.parametrize("seed", range(8))
def test_prompt_holds_the_code_of_every_question(prompts, seed):
    one = prompts.prompt(characters, seed)
    lines = text_of(one.tokens[0]).splitlines()
    assert len(lines) == prompts.LISTED + prompts.REPEATED + prompts.LAST
    questions = [text_of(row) for row in one.questions]
    assert len(set(questions)) == len(questions) == prompts.ASKED_OF_LIST + prompts.LAST
    for question, length, is_last in zip(questions, one.lengths, one.is_last, strict=True):
        assert len(question) == int(length)
        where = [index for index, line in enumerate(lines) if line.startswith(question)]
        assert len(where) == 1, "asked lines stand in the prompt once"
        assert (where[0] >= prompts.LISTED + prompts.REPEATED) == is_last


def test_prompt_depends_on_its_seed_alone(prompts):
    first, again, other = (prompts.prompt(characters, seed) for seed in (1, 1, 5))
    assert torch.equal(first.tokens, again.tokens) and torch.equal(first.questions, again.questions)
    assert first.template == other.template
    assert text_of(first.tokens[0]) != text_of(other.tokens[0])
