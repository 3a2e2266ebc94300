"""Tasks of `lab06_replay` on cost: what each way to have window rows after a hit stores, loads and computes."""

from collections.abc import Sequence

from labkit.replay.costs import CacheGeometry, Machine, Policy, ReplayCost, Request, Storage


def replay_cost(geometry: CacheGeometry, policy: Policy, request: Request, storage: Storage) -> ReplayCost:
    """Return what one request stores, loads and computes again under a policy.

    The global rows of the hit are loaded under every policy. With FULL_CACHE the window is stored at each block
    boundary after the hit up to the end of the prompt, and loaded for the hit. With CHECKPOINTS it is stored at each
    such multiple of `checkpoint_tokens`, and the tokens since the last one before the hit, or at it, are computed again
    from the window loaded there. Where there is none, or exact replay takes no more tokens, it is exact replay, and no
    window is loaded. Replay computes W or L(W - 1) tokens again, but never more than the hit, and stores and loads no
    window.

    Raises
    ------
    ValueError
        If the hit is below 0, longer than the prompt, or not a multiple of the block.

    Example
    -------
    >>> from labkit.replay.costs import V41_FLASH
    >>> replay_cost(V41_FLASH, Policy.FULL_CACHE, Request(prompt_tokens=1000, hit_tokens=512), Storage())
    ReplayCost(tokens_recomputed=0, bytes_stored=2703360, bytes_loaded=3159040.0)
    """
    hit, prompt = request.hit_tokens, request.prompt_tokens
    if not 0 <= hit <= prompt:
        raise ValueError(f"request: expected a hit of 0 to {prompt} tokens, the prompt, got {hit}")
    if hit % storage.block_tokens:
        raise ValueError(f"request: expected a hit in blocks of {storage.block_tokens} tokens, got {hit}")

    state, loaded = geometry.window_state_bytes, hit * geometry.global_token_bytes
    exact = min(hit, geometry.window_layers * (geometry.window - 1))
    if policy is Policy.EXACT_REPLAY:
        return ReplayCost(exact, 0, loaded)
    if policy is Policy.BOUNDED_REPLAY:
        return ReplayCost(min(hit, geometry.window), 0, loaded)

    step = storage.block_tokens if policy is Policy.FULL_CACHE else storage.checkpoint_tokens
    stored = (prompt // step - hit // step) * state
    is_loaded = hit >= step and hit % step < exact
    return ReplayCost(hit % step if is_loaded else exact, stored, loaded + is_loaded * state)


def choose_policy(
    geometry: CacheGeometry,
    requests: Sequence[Request],
    storage: Storage,
    machine: Machine,
    must_be_exact: bool,
) -> Policy:
    """Return the policy under which disk and processor are busy the shortest in all.

    That is the sum of `ReplayCost.seconds` over the requests. With `must_be_exact` bounded replay is out of the
    question. Of policies that take equally long, the first in the order of `Policy`.

    Example
    -------
    >>> from labkit.replay.costs import V41_FLASH
    >>> machine = Machine(prefill_tokens_per_second=1e4, read_bytes_per_second=5e9, write_bytes_per_second=2e9)
    >>> choose_policy(V41_FLASH, [Request(4096, 2048)], Storage(), machine, must_be_exact=False).name
    'CHECKPOINTS'
    """
    allowed = [policy for policy in Policy if not (must_be_exact and policy is Policy.BOUNDED_REPLAY)]

    def seconds(policy: Policy) -> float:
        return sum(replay_cost(geometry, policy, request, storage).seconds(machine) for request in requests)

    return min(allowed, key=seconds)
