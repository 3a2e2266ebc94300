"""Checks of `replay_cost` and `choose_policy`, over drawn geometries, storages and requests.

A policy is also right if it is the fastest by the student's own `replay_cost`, whose slips have cost their points.
"""

import copy
from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, Raised, expect_close, expect_raises, plain_array
from labkit.replay.costs import CacheGeometry, Machine, Policy, ReplayCost, Request, Storage

from autograder.checks import Registry

checks = Registry()
check = checks.check

CLOSE = 1e-9
"""Products of whole numbers below 2^53 are exact; this is room for another order."""

TIED = 1e-9
"""Times closer than this share are equal: sums of up to 20 terms in another order."""

CLEAR = 1.02
"""Elsewhere the second fastest policy takes 2 % more time at least."""

MOST_NUMBER = 2.0**53


def _geometry(cases: Any, window: int = 0) -> CacheGeometry:
    layers = int(cases.rng.integers(2, 60))
    window = window or int(2 ** cases.rng.integers(4, 9))
    return CacheGeometry(
        "drawn", layers, window, int(cases.rng.integers(100, 2000)), float(cases.rng.integers(200, 9000))
    )


def _request(cases: Any, storage: Storage, most_blocks: int = 40) -> Request:
    """Return a request with a hit that ends at a block and, where checkpoints are rarer, at none of them."""
    ratio = storage.checkpoint_tokens // storage.block_tokens
    blocks = ratio * int(cases.rng.integers(1, most_blocks)) + int(cases.rng.integers(1, ratio))
    prompt = blocks * storage.block_tokens + int(cases.rng.integers(1, 20 * storage.checkpoint_tokens))
    return Request(prompt, blocks * storage.block_tokens)


def _as_cost(got: Any) -> ReplayCost:
    if not isinstance(got, tuple | list) or len(got) != 3:
        raise Mismatch("ReplayCost(tokens_recomputed, bytes_stored, bytes_loaded)", f"a {type(got).__name__}")
    numbers = [plain_array(part) for part in got]
    for name, number in zip(ReplayCost._fields, numbers, strict=True):
        if number.shape != () or number.dtype.kind not in "iuf" or not 0 <= number <= MOST_NUMBER:
            raise Mismatch(f"a number of at least 0 as {name}", f"{number}")
    return ReplayCost(*(float(number) for number in numbers))


def _expect_cost(
    student: Any, geometry: CacheGeometry, policy: Policy, request: Request, storage: Storage, fields: tuple[str, ...]
) -> None:
    got = _as_cost(student.replay_cost(geometry, policy, request, storage))
    expected = fp4kv.replay_cost(geometry, policy, request, storage)
    for field in fields:
        wanted = float(getattr(expected, field))
        given = {
            "layers": geometry.window_layers, "window": geometry.window, "policy": policy.name,
            "prompt": request.prompt_tokens, "hit": request.hit_tokens,
            "block": storage.block_tokens, "checkpoint": storage.checkpoint_tokens, "asked": field,
        }  # fmt: skip
        expect_close(getattr(got, field), wanted, CLOSE * max(wanted, 1), given=given)


NOT_LOADED = ("tokens_recomputed", "bytes_stored")


@check(
    "replay_cost-replay",
    points=1,
    catches="replays more tokens than were hit, L·W for L(W - 1), or stores windows that replay makes needless",
    hint="min(hit, W) or min(hit, L(W - 1)) tokens, and nothing is stored",
    reveal=True,
)
def replay_computes_and_stores_nothing(student: Any, cases: Any) -> None:
    """Replay computes W or L(W - 1) tokens again, at most those of the hit, and stores no window."""
    for _ in range(3):
        geometry = _geometry(cases)
        storage = Storage(1, 4)
        for hit in (int(cases.rng.integers(1, geometry.window)), 100 * geometry.window):
            for policy in (Policy.BOUNDED_REPLAY, Policy.EXACT_REPLAY):
                _expect_cost(student, geometry, policy, Request(hit + 3, hit), storage, NOT_LOADED)


@check(
    "replay_cost-full_cache",
    points=1,
    catches="stores the boundaries of the hit again, leaves out the one at the end of the prompt, or computes tokens anew",
    hint="boundaries after the hit, up to the prompt: prompt // block - hit // block of them",
)
def the_full_cache_stores_each_new_boundary(student: Any, cases: Any) -> None:
    """With FULL_CACHE each block boundary after the hit is stored once, and nothing is computed again."""
    for whole in (True, False, False):
        geometry, storage = _geometry(cases), Storage(64, 512)
        request = _request(cases, storage)
        if whole:
            request = request._replace(prompt_tokens=request.hit_tokens + 64 * int(cases.rng.integers(1, 9)))
        _expect_cost(student, geometry, Policy.FULL_CACHE, request, storage, NOT_LOADED)
        _expect_cost(student, geometry, Policy.FULL_CACHE, Request(640, 640), storage, NOT_LOADED)


@check(
    "replay_cost-checkpoints",
    points=1,
    catches="computes again from the wrong checkpoint, or stores windows at blocks",
    hint="hit modulo checkpoint_tokens tokens are computed again; a hit at a checkpoint needs none",
)
def checkpoints_recompute_from_the_last(student: Any, cases: Any) -> None:
    """With CHECKPOINTS tokens since the last checkpoint are computed again, and each new one is stored once."""
    for _ in range(3):
        geometry = _geometry(cases)
        storage = Storage(max(1, geometry.window // 8), geometry.window // 8 * 4)
        for request in (
            _request(cases, storage),
            Request(7 * storage.checkpoint_tokens, 3 * storage.checkpoint_tokens),
        ):
            _expect_cost(student, geometry, Policy.CHECKPOINTS, request, storage, NOT_LOADED)


@check(
    "replay_cost-no_checkpoint",
    points=1,
    catches="takes the start of the text for a checkpoint, or computes more tokens than exact replay would",
    hint="before the first checkpoint, and far after one, exact replay is what is left",
)
def without_a_near_checkpoint_it_is_exact_replay(student: Any, cases: Any) -> None:
    """Where there is no checkpoint yet, or exact replay is shorter, it is exact replay, which loads no window."""
    for _ in range(3):
        geometry = _geometry(cases)
        exact = geometry.window_layers * (geometry.window - 1)
        far = Storage(1, 4 * exact)
        before, after = int(cases.rng.integers(2, exact)), 4 * exact + int(cases.rng.integers(exact + 1, 4 * exact))
        for hit in (before, 2 * exact, after, 4 * exact + exact):
            request = Request(hit + 5, hit)
            _expect_cost(student, geometry, Policy.CHECKPOINTS, request, far, ("tokens_recomputed",))
            if hit != 5 * exact:  # as many tokens from the checkpoint as by exact replay: either will do
                globals_alone = request.hit_tokens * geometry.global_token_bytes
                got = _as_cost(student.replay_cost(geometry, Policy.CHECKPOINTS, request, far)).bytes_loaded
                if got > globals_alone * (1 + CLOSE):
                    raise Mismatch(
                        f"no window loaded: {globals_alone} bytes", f"{got}", f"{request}, {far}, {geometry}"
                    )


@check(
    "replay_cost-loaded",
    points=1,
    catches="forgets the global rows, which every policy loads, or the window where one is loaded",
    hint="hit · global_token_bytes under every policy, and one window more where it was stored",
)
def global_rows_are_always_loaded(student: Any, cases: Any) -> None:
    """The global rows of the hit are loaded under every policy, and a window where one was stored."""
    for _ in range(2):
        geometry = _geometry(cases)
        storage = Storage(max(1, geometry.window // 8), geometry.window // 8 * 4)
        request = _request(cases, storage)
        for policy in Policy:
            _expect_cost(student, geometry, policy, request, storage, ("bytes_loaded",))
            _expect_cost(student, geometry, policy, Request(request.prompt_tokens, 0), storage, ("bytes_loaded",))


@check(
    "replay_cost-refuses",
    points=1,
    catches="prices a hit that no prefix cache could have",
    hint="raise ValueError for a hit longer than the prompt, and for one that is no multiple of block_tokens",
)
def impossible_hits_are_refused(student: Any, cases: Any) -> None:
    """A hit longer than the prompt, and one that does not end at a block, are refused."""
    geometry, storage = _geometry(cases), Storage(64, 512)
    _as_cost(student.replay_cost(geometry, Policy.BOUNDED_REPLAY, Request(128, 128), storage))  # this one is not
    for request in (Request(100, 128), Request(1000, 64 * int(cases.rng.integers(1, 9)) + 1), Request(1000, -64)):
        for policy in Policy:
            call = lambda r=request, p=policy: student.replay_cost(geometry, p, r, storage)  # noqa: E731
            expect_raises(ValueError, call, given=f"{policy.name}, {request}, blocks of 64")


class Service:
    """A geometry, a trace of requests, a storage and a machine."""

    def __init__(self, cases: Any, n_requests: int) -> None:
        self.geometry, self.storage = _geometry(cases, window=128), Storage(256, 2048)
        self.requests = []
        often = float(cases.rng.choice([0.0, 0.9]))  # how often a hit ends at a checkpoint
        for _ in range(n_requests):
            hit = 256 * int(cases.rng.integers(0, 100))
            hit -= hit % 2048 * int(cases.rng.random() < often)
            self.requests.append(Request(hit + int(np.exp2(cases.rng.uniform(4, 16))), hit))
        speeds = np.exp2(cases.rng.uniform((11, 29, 27), (17, 35, 34)))
        self.machine = Machine(*map(float, speeds))

    def seconds(self, cost_of: Any) -> dict[Policy, float]:
        """Return how long each policy takes by a function for one request's cost."""
        return {
            policy: sum(
                cost_of(self.geometry, policy, request, self.storage).seconds(self.machine) for request in self.requests
            )
            for policy in Policy
        }

    def alone(self, number: int) -> "Service":
        """Return the same service with one of its requests."""
        single = copy.copy(self)
        single.requests = [self.requests[number]]
        return single

    def ask(self, student: Any, must_be_exact: bool) -> Policy:
        """Return the student's choice."""
        got = student.choose_policy(self.geometry, self.requests, self.storage, self.machine, must_be_exact)
        return as_policy(got)


def as_policy(got: Any) -> Policy:
    """Return a policy by its name: an enumeration stays in the kernel, and what comes back is a handle to it."""
    name = got.name if isinstance(got, Policy) else got.get("name") if hasattr(got, "get") else None
    if not isinstance(name, str) or name not in Policy.__members__:
        raise Mismatch("a Policy", f"a {type(got).__name__}")
    return Policy[name]


def _fastest(seconds: dict[Policy, float], must_be_exact: bool) -> Policy:
    allowed = [policy for policy in Policy if not (must_be_exact and policy is Policy.BOUNDED_REPLAY)]
    least = min(seconds[policy] for policy in allowed)
    return next(policy for policy in allowed if seconds[policy] <= least * (1 + TIED))


def _is_clear(seconds: dict[Policy, float], must_be_exact: bool) -> bool:
    best = _fastest(seconds, must_be_exact)
    others = [
        taken
        for policy, taken in seconds.items()
        if policy is not best and not (must_be_exact and policy is Policy.BOUNDED_REPLAY)
    ]
    return min(others) > CLEAR * seconds[best]


def _expect_choice(student: Any, service: Service, must_be_exact: bool) -> None:
    expected = _fastest(service.seconds(fp4kv.replay_cost), must_be_exact)
    got = service.ask(student, must_be_exact)
    if got is expected:
        return
    try:
        own = service.seconds(lambda *given: _as_cost(student.replay_cost(*given)))
    except (Mismatch, Raised):
        own = None
    if own is None or len(set(own.values())) == 1 or got is not _fastest(own, must_be_exact):
        given = f"{len(service.requests)} requests, {service.machine}, must_be_exact = {must_be_exact}"
        raise Mismatch(expected.name, got.name, given)


def _draw_for(cases: Any, wanted: Policy, must_be_exact: bool, n_requests: int = 4) -> Service:
    """Return a service for which one policy is clearly the fastest, over all requests but not over each."""
    while True:
        service = Service(cases, n_requests)
        seconds = service.seconds(fp4kv.replay_cost)
        if _fastest(seconds, must_be_exact) is wanted and _is_clear(seconds, must_be_exact):
            return service


@check(
    "choose_policy-fastest",
    points=1,
    catches="counts computing or the disk alone, or looks at one request",
    hint="the sum of replay_cost(…).seconds(machine) over all requests, for each policy",
    uses=("replay_cost",),
)
def the_fastest_policy_in_all_is_chosen(student: Any, cases: Any) -> None:
    """The policy that keeps disk and processor busy for the shortest time over all requests is chosen."""
    for wanted in (Policy.FULL_CACHE, Policy.CHECKPOINTS, Policy.BOUNDED_REPLAY):
        for _ in range(2):
            _expect_choice(student, _draw_for(cases, wanted, must_be_exact=False), must_be_exact=False)
    _expect_choice(student, _mixed(cases), must_be_exact=False)
    _expect_choice(student, _draw_for_field(cases, "tokens_recomputed"), must_be_exact=False)
    _expect_choice(student, _draw_for_field(cases, "ssd"), must_be_exact=False)


def _mixed(cases: Any) -> Service:
    """Return a service whose first request, and whose last, would each be served faster by another policy."""
    while True:
        service = Service(cases, 3)
        seconds = service.seconds(fp4kv.replay_cost)
        ends = {_fastest(service.alone(number).seconds(fp4kv.replay_cost), False) for number in (0, -1)}
        if _is_clear(seconds, False) and _fastest(seconds, False) not in ends:
            return service


def _draw_for_field(cases: Any, field: str) -> Service:
    """Return a service for which computing alone, or the disk alone, would choose another policy."""
    part = {
        "tokens_recomputed": lambda cost, machine: cost.tokens_recomputed / machine.prefill_tokens_per_second,
        "ssd": lambda cost, machine: cost.ssd_seconds(machine),
    }[field]
    while True:
        service = Service(cases, 3)
        seconds = service.seconds(fp4kv.replay_cost)
        alone = {
            policy: sum(
                part(fp4kv.replay_cost(service.geometry, policy, request, service.storage), service.machine)
                for request in service.requests
            )
            for policy in Policy
        }
        if _is_clear(seconds, False) and _fastest(alone, False) is not _fastest(seconds, False):
            return service


@check(
    "choose_policy-exact",
    points=1,
    catches="chooses bounded replay where it is out of the question, or never",
    hint="with must_be_exact the fastest of the other three",
    uses=("replay_cost",),
)
def what_must_be_exact_is_not_bounded(student: Any, cases: Any) -> None:
    """With must_be_exact bounded replay is never chosen; without it, it may be."""
    for wanted in (Policy.EXACT_REPLAY, Policy.CHECKPOINTS):
        service = _draw_for(cases, wanted, must_be_exact=True)
        while _fastest(service.seconds(fp4kv.replay_cost), False) is not Policy.BOUNDED_REPLAY:
            service = _draw_for(cases, wanted, must_be_exact=True)
        _expect_choice(student, service, must_be_exact=True)


@check(
    "choose_policy-ties",
    points=1,
    catches="takes the last of policies that are equally fast",
    hint="min over the policies in the order of Policy gives the first of equals",
    uses=("replay_cost",),
)
def the_first_of_equals_is_chosen(student: Any, cases: Any) -> None:
    """Of policies that take equally long, the first in the order of Policy is chosen."""
    service = Service(cases, 3)
    service.requests = [Request(int(n), 0) for n in cases.rng.integers(1, 256, 3)]  # nothing hit, nothing to store
    _expect_choice(student, service, must_be_exact=False)
    service.requests = [Request(int(n), 0) for n in cases.rng.integers(257, 2048, 3)]  # a boundary, no checkpoint
    _expect_choice(student, service, must_be_exact=True)
