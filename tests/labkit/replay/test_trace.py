"""The trace: what each request finds against a search through all prompts before it, and what is summed up."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.replay.costs import Machine, ReplayCost, Request, Storage
from labkit.replay.trace import (
    ASSUMED_MACHINE,
    SYSTEM_PROMPT_TOKENS,
    find_hits,
    first_token_seconds,
    synthetic_trace,
    total,
)

BLOCK = Storage(block_tokens=64, checkpoint_tokens=512)


def common(a: np.ndarray, b: np.ndarray) -> int:
    """How many tokens two texts share from the first on."""
    for count, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            return count
    return min(len(a), len(b))


@given(
    prompts=st.lists(st.lists(st.integers(0, 1), max_size=14), max_size=8),
    block_tokens=st.integers(1, 4),
)
def test_a_hit_is_the_longest_run_of_blocks_that_an_earlier_prompt_began_with(prompts, block_tokens: int) -> None:
    texts = [np.array(prompt, np.int64) for prompt in prompts]
    for number, (text, found) in enumerate(zip(texts, find_hits(texts, block_tokens), strict=True)):
        shared = max((common(text, other) for other in texts[:number]), default=0)
        hit = min(shared, max(0, len(text) - 1)) // block_tokens * block_tokens
        assert found == Request(len(text), hit)


def test_prompts_that_part_in_a_block_hit_the_blocks_before_it() -> None:
    a, b = np.arange(400), np.arange(400)
    b[255:] += 1000
    assert find_hits([a, b], block_tokens=128)[1] == Request(400, 128)


def test_a_block_is_found_by_all_that_is_before_it_and_not_by_itself() -> None:
    a, b = np.repeat([1, 2, 3], 4), np.repeat([9, 2, 3], 4)
    assert find_hits([a, b], block_tokens=4)[1].hit_tokens == 0


def test_a_seed_gives_one_trace_and_another_seed_another() -> None:
    traces = [synthetic_trace(seed, BLOCK, chats=5, documents=2) for seed in (1, 1, 2)]
    assert traces[0] == traces[1] != traces[2]


def test_hits_are_whole_blocks_and_leave_a_token_to_compute() -> None:
    trace = synthetic_trace(0, BLOCK, chats=30, documents=10)
    assert len(trace) > 100
    assert all(request.hit_tokens % 64 == 0 and 0 <= request.hit_tokens < request.prompt_tokens for request in trace)


def test_a_lone_chat_hits_nothing_first_and_then_all_whole_blocks_of_the_prompt_before() -> None:
    longest = max((synthetic_trace(seed, BLOCK, chats=1, documents=0) for seed in range(5)), key=len)
    assert len(longest) > 4
    assert longest[0].hit_tokens == 0
    for before, request in itertools.pairwise(longest):
        assert request.prompt_tokens > before.prompt_tokens
        assert request.hit_tokens == before.prompt_tokens // 64 * 64


def test_a_lone_document_is_hit_up_to_its_end_by_every_later_question() -> None:
    longest = max((synthetic_trace(seed, BLOCK, chats=0, documents=1) for seed in range(5)), key=len)
    hits = [request.hit_tokens for request in longest]
    assert len(hits) > 3 and hits[0] == 0 and hits[1] > 0 and len(set(hits[1:])) == 1


def test_chats_share_system_prompts() -> None:
    """Most chats find one on their first turn, and no first turn finds more than the longest one."""
    trace = synthetic_trace(0, BLOCK, chats=40, documents=0)
    misses = sum(request.hit_tokens == 0 for request in trace)
    assert 1 <= misses <= len(SYSTEM_PROMPT_TOKENS)


@pytest.mark.parametrize("seed", range(3))
def test_a_trace_looks_like_one_of_a_busy_service(seed: int) -> None:
    trace = synthetic_trace(seed, Storage())
    assert 500 < len(trace) < 1200
    assert 0.6 < sum(r.hit_tokens for r in trace) / sum(r.prompt_tokens for r in trace) < 0.9


def test_the_first_token_waits_for_loading_and_for_what_is_computed() -> None:
    machine = Machine(prefill_tokens_per_second=100.0, read_bytes_per_second=50.0, write_bytes_per_second=1e-9)
    cost = ReplayCost(tokens_recomputed=30, bytes_stored=7, bytes_loaded=25)
    assert first_token_seconds(Request(90, 20), cost, machine) == pytest.approx(0.5 + 1.0)


def test_totals_are_sums_means_and_percentiles() -> None:
    trace = [Request(100 * count, 0) for count in range(1, 21)]
    costs = [ReplayCost(count, 2 * count, 0.5) for count in range(1, 21)]
    found = total(trace, costs, Machine(100.0, 1e300, 1.0))
    assert found[:3] == (420, 10.0, 210)
    assert found.mean_first_token_s == pytest.approx(10.5 * 1.01)
    assert found.p95_first_token_s == pytest.approx(19.05 * 1.01)  # between the 19th and the 20th of 20


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: synthetic_trace(0, BLOCK, chats=-1), "chats: expected at least 0, got -1"),
        (lambda: synthetic_trace(0, BLOCK, documents=-2), "documents: expected at least 0, got -2"),
        (lambda: synthetic_trace(0, Storage(block_tokens=0)), "block_tokens: expected at least 1, got 0"),
        (lambda: total([], [], ASSUMED_MACHINE), "trace: expected at least one request, got none"),
        (lambda: total([Request(1, 0)], [], ASSUMED_MACHINE), "costs: expected one for each of 1 requests, got 0"),
    ],
)
def test_wrong_arguments_are_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        call()


def test_nothing_asked_is_nothing_found() -> None:
    assert synthetic_trace(0, BLOCK, chats=0, documents=0) == []
