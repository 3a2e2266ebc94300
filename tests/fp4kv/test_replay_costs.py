"""What policies cost: the public figures from their geometry, and the rules against a slow walk over tokens."""

import itertools

import numpy as np
import pytest
from fp4kv import choose_policy, replay_cost
from hypothesis import given
from hypothesis import strategies as st
from labkit.replay.costs import V41_FLASH, CacheGeometry, Machine, Policy, ReplayCost, Request, Storage

SMALL = CacheGeometry("small", window_layers=3, window=5, window_row_bytes=7, global_token_bytes=11.0)
MACHINE = Machine(prefill_tokens_per_second=1000.0, read_bytes_per_second=1e5, write_bytes_per_second=1e4)


def test_v41_flash_is_what_its_formats_add_up_to() -> None:
    assert V41_FLASH.global_token_bytes == (288 + 68) * (3 / 2 + 1) == 890
    assert V41_FLASH.window_row_bytes == 528
    assert V41_FLASH.window_state_bytes == 40 * 128 * 528 == 2_703_360


def test_v41_flash_replays_5080_tokens_exactly_and_128_boundedly() -> None:
    request = Request(prompt_tokens=8192, hit_tokens=7936)
    exact, bounded = (
        replay_cost(V41_FLASH, policy, request, Storage()) for policy in (Policy.EXACT_REPLAY, Policy.BOUNDED_REPLAY)
    )
    assert (exact.tokens_recomputed, bounded.tokens_recomputed) == (5080, 128)
    assert exact[1:] == bounded[1:] == (0, 7936 * 890)


@pytest.mark.parametrize(("step", "times"), [(128, 23.7), (256, 11.9), (2048, 1.48), (32_768, 0.09)])
def test_windows_stored_by_v41_flash_in_times_of_its_global_rows(step: int, times: float) -> None:
    prompt = 4 * 32_768
    for policy, storage in (
        (Policy.FULL_CACHE, Storage(block_tokens=step)),
        (Policy.CHECKPOINTS, Storage(block_tokens=128, checkpoint_tokens=step)),
    ):
        stored = replay_cost(V41_FLASH, policy, Request(prompt, 0), storage).bytes_stored
        assert round(stored / (prompt * V41_FLASH.global_token_bytes), 1 if times > 10 else 2) == times


def walk(geometry: CacheGeometry, policy: Policy, storage: Storage, request: Request) -> ReplayCost:
    """Serve one request token by token: which boundaries it is the first to pass, and where it can set out from."""
    hit, prompt = request.hit_tokens, request.prompt_tokens
    stored_at = {Policy.FULL_CACHE: storage.block_tokens, Policy.CHECKPOINTS: storage.checkpoint_tokens}.get(policy)
    layers, window = geometry.window_layers, geometry.window
    state = sum(geometry.window_row_bytes for _ in range(layers) for _ in range(window))

    def is_stored(position: int) -> bool:
        return stored_at is not None and position > 0 and position % stored_at == 0

    written = sum(state for position in range(hit + 1, prompt + 1) if is_stored(position))
    furthest_back = window if policy is Policy.BOUNDED_REPLAY else layers * (window - 1)
    again, loaded = 0, 0
    while again < furthest_back and again < hit:
        if is_stored(hit - again):
            loaded = state
            break
        again += 1
    return ReplayCost(again, written, hit * geometry.global_token_bytes + loaded)


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("checkpoint", [4, 8, 12, 16, 40])
def test_costs_are_those_of_a_walk_over_the_tokens(policy: Policy, checkpoint: int) -> None:
    storage = Storage(block_tokens=4, checkpoint_tokens=checkpoint)
    for hit, new in itertools.product(range(0, 61, 4), range(0, 30)):
        request = Request(hit + new, hit)
        assert replay_cost(SMALL, policy, request, storage) == walk(SMALL, policy, storage, request), request


def test_checkpoints_recompute_from_the_nearest_one_or_replay_where_that_is_shorter() -> None:
    """L(W - 1) = 12 tokens are exact in SMALL; a state takes 105 bytes."""
    storage = Storage(block_tokens=4, checkpoint_tokens=16)
    costs = [replay_cost(SMALL, Policy.CHECKPOINTS, Request(hit, hit), storage) for hit in range(0, 37, 4)]
    assert [cost.tokens_recomputed for cost in costs] == [0, 4, 8, 12, 0, 4, 8, 12, 0, 4]
    windows = [cost.bytes_loaded - 11 * hit for cost, hit in zip(costs, range(0, 37, 4), strict=True)]
    assert windows == [0, 0, 0, 0, 105, 105, 105, 0, 105, 105]


def test_a_window_stored_once_is_not_stored_by_the_request_that_hits_it() -> None:
    """Requests that grow out of each other store each boundary of the longest once."""
    lengths = [0, 7, 21, 22, 64]
    for policy in (Policy.FULL_CACHE, Policy.CHECKPOINTS):
        storage = Storage(block_tokens=4, checkpoint_tokens=8)
        grown = [Request(prompt, 4 * (before // 4)) for before, prompt in itertools.pairwise(lengths)]
        stored = sum(replay_cost(SMALL, policy, request, storage).bytes_stored for request in grown)
        assert stored == replay_cost(SMALL, policy, Request(64, 0), storage).bytes_stored


def test_seconds_are_the_disk_both_ways_and_the_tokens() -> None:
    cost = ReplayCost(tokens_recomputed=500, bytes_stored=2000, bytes_loaded=3e5)
    assert cost.ssd_seconds(MACHINE) == pytest.approx(0.2 + 3.0)
    assert cost.seconds(MACHINE) == pytest.approx(0.2 + 3.0 + 0.5)


REQUESTS = st.lists(
    st.tuples(st.integers(0, 15), st.integers(0, 40)).map(lambda pair: Request(4 * pair[0] + pair[1], 4 * pair[0])),
    min_size=1,
    max_size=6,
)


@given(
    requests=REQUESTS,
    speeds=st.tuples(*[st.floats(1e-3, 1e9)] * 3),
    must_be_exact=st.booleans(),
)
def test_the_policy_chosen_is_the_first_of_the_fastest(requests, speeds, must_be_exact: bool) -> None:
    machine, storage = Machine(*speeds), Storage(4, 16)
    seconds = {}
    for policy in Policy:
        costs = [walk(SMALL, policy, storage, request) for request in requests]
        seconds[policy] = sum(cost.seconds(machine) for cost in costs)
    chosen = choose_policy(SMALL, requests, storage, machine, must_be_exact)
    allowed = [policy for policy in Policy if policy is not Policy.BOUNDED_REPLAY or not must_be_exact]
    assert chosen in allowed
    assert seconds[chosen] == min(seconds[policy] for policy in allowed)
    assert all(seconds[policy] > seconds[chosen] for policy in allowed[: allowed.index(chosen)])


def test_each_policy_is_the_one_for_some_machine() -> None:
    """Fast disk: store everything. Slow disk: replay. In between: checkpoints, where the result must be exact."""
    requests, storage = [Request(400, 324), Request(420, 408)], Storage(4, 40)
    machines = {
        Policy.FULL_CACHE: Machine(1, 1e9, 1e9),
        Policy.CHECKPOINTS: Machine(20, 1e5, 2000),
        Policy.EXACT_REPLAY: Machine(1e9, 1, 1),
    }
    for policy, machine in machines.items():
        assert choose_policy(SMALL, requests, storage, machine, must_be_exact=True) is policy
    loosely = choose_policy(SMALL, requests, storage, Machine(1e4, 1e5, 10), must_be_exact=False)
    assert loosely is Policy.BOUNDED_REPLAY
    assert choose_policy(SMALL, [Request(3, 0)], storage, MACHINE, must_be_exact=False) is Policy.FULL_CACHE  # a draw


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(10, 12), "request: expected a hit of 0 to 10 tokens, the prompt, got 12"),
        (Request(10, -4), "request: expected a hit of 0 to 10 tokens, the prompt, got -4"),
        (Request(10, 6), "request: expected a hit in blocks of 4 tokens, got 6"),
    ],
)
@pytest.mark.parametrize("policy", Policy)
def test_a_hit_that_cannot_be_is_refused(request_: Request, message: str, policy: Policy) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        replay_cost(SMALL, policy, request_, Storage(4, 16))
    with pytest.raises(ValueError, match=f"^{message}$"):
        choose_policy(SMALL, [Request(4, 4), request_], Storage(4, 16), MACHINE, must_be_exact=False)


def test_amounts_are_whole_bytes_and_tokens() -> None:
    for policy in Policy:
        cost = replay_cost(V41_FLASH, policy, Request(3000, 2560), Storage())
        assert isinstance(cost.tokens_recomputed, int | np.integer) and isinstance(cost.bytes_stored, int | np.integer)
