"""Checks of `replay_cost`, over drawn geometries, storages and requests: each looks at some fields of the cost."""

from typing import Any

import fp4kv
from labkit.expect import Mismatch, expect_close, expect_raises, plain_array
from labkit.replay.costs import CacheGeometry, Policy, ReplayCost, Request, Storage

from autograder.checks import Registry

checks = Registry()
check = checks.check

CLOSE = 1e-9
"""Products of whole numbers below 2^53 are exact; this is room for another order."""

MOST_NUMBER = 2.0**53


def draw_geometry(cases: Any, window: int = 0) -> CacheGeometry:
    """Return a geometry, with a window of 16 to 256 or the given one."""
    layers = int(cases.rng.integers(2, 60))
    window = window or int(2 ** cases.rng.integers(4, 9))
    return CacheGeometry(
        "drawn", layers, window, int(cases.rng.integers(100, 2000)), float(cases.rng.integers(800, 36000)) / 4
    )


def _request(cases: Any, storage: Storage, most_blocks: int = 40) -> Request:
    """Return a request with a hit that ends at a block and, where checkpoints are rarer, at none of them."""
    ratio = storage.checkpoint_tokens // storage.block_tokens
    blocks = ratio * int(cases.rng.integers(1, most_blocks)) + int(cases.rng.integers(1, ratio))
    prompt = blocks * storage.block_tokens + int(cases.rng.integers(1, 20 * storage.checkpoint_tokens))
    return Request(prompt, blocks * storage.block_tokens)


def _just_before(storage: Storage, checkpoint: int) -> Request:
    """Return a request whose hit ends a block before a checkpoint, and whose prompt just reaches it."""
    end = checkpoint * storage.checkpoint_tokens
    return Request(end, end - storage.block_tokens)


def as_cost(got: Any) -> ReplayCost:
    """Return a cost, if the answer has the parts of one."""
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
    got = as_cost(student.replay_cost(geometry, policy, request, storage))
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
        geometry = draw_geometry(cases)
        storage = Storage(1, 4)
        for hit in (0, int(cases.rng.integers(1, geometry.window)), 100 * geometry.window):
            for policy in (Policy.BOUNDED_REPLAY, Policy.EXACT_REPLAY):
                _expect_cost(student, geometry, policy, Request(hit + 3, hit), storage, NOT_LOADED)


@check(
    "replay_cost-full_cache",
    points=1,
    catches="stores the boundaries of the hit again, leaves out the prompt's last, or computes tokens anew",
    hint="the boundary at the hit is stored already; one at the end of the prompt is new",
)
def the_full_cache_stores_each_new_boundary(student: Any, cases: Any) -> None:
    """With FULL_CACHE each block boundary after the hit is stored once, and nothing is computed again."""
    for whole in (True, False, False):
        geometry, storage = draw_geometry(cases), Storage(64, 512)
        request = _request(cases, storage)
        if whole:
            request = request._replace(prompt_tokens=request.hit_tokens + 64 * int(cases.rng.integers(1, 9)))
        _expect_cost(student, geometry, Policy.FULL_CACHE, request, storage, NOT_LOADED)
        for other in (Request(640, 640), Request(request.prompt_tokens, 0)):
            _expect_cost(student, geometry, Policy.FULL_CACHE, other, storage, NOT_LOADED)


@check(
    "replay_cost-checkpoints",
    points=1,
    catches="computes again from the wrong checkpoint, or stores windows at blocks",
    hint="hit modulo checkpoint_tokens tokens are computed again; a hit at a checkpoint needs none",
)
def checkpoints_recompute_from_the_last(student: Any, cases: Any) -> None:
    """With CHECKPOINTS tokens since the last checkpoint are computed again, and each new one is stored once."""
    for _ in range(3):
        geometry = draw_geometry(cases)
        storage = Storage(max(1, geometry.window // 8), geometry.window // 8 * 4)
        for request in (
            _request(cases, storage),
            Request(7 * storage.checkpoint_tokens, 3 * storage.checkpoint_tokens),
            Request(7 * storage.checkpoint_tokens, storage.checkpoint_tokens),
            _just_before(storage, 3),
        ):
            _expect_cost(student, geometry, Policy.CHECKPOINTS, request, storage, NOT_LOADED)
        nothing_hit = Request(7 * storage.checkpoint_tokens, 0)
        _expect_cost(student, geometry, Policy.CHECKPOINTS, nothing_hit, storage, ("bytes_stored",))


@check(
    "replay_cost-no_checkpoint",
    points=1,
    catches="takes the start of the text for a checkpoint, or computes more tokens than exact replay would",
    hint="before the first checkpoint, and far after one, exact replay is what is left",
)
def without_a_near_checkpoint_it_is_exact_replay(student: Any, cases: Any) -> None:
    """Where there is no checkpoint yet, or exact replay is shorter, it is exact replay, which loads no window."""
    for _ in range(3):
        geometry = draw_geometry(cases)
        exact = geometry.window_layers * (geometry.window - 1)
        far = Storage(1, 4 * exact)
        before, after = int(cases.rng.integers(2, exact)), 4 * exact + int(cases.rng.integers(exact + 1, 4 * exact))
        for hit in (before, 2 * exact, after, 4 * exact + exact):
            request = Request(hit + 5, hit)
            _expect_cost(student, geometry, Policy.CHECKPOINTS, request, far, ("tokens_recomputed",))
            if hit != 5 * exact:  # as many tokens from the checkpoint as by exact replay: either will do
                globals_alone = request.hit_tokens * geometry.global_token_bytes
                got = as_cost(student.replay_cost(geometry, Policy.CHECKPOINTS, request, far)).bytes_loaded
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
        geometry = draw_geometry(cases)
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
    geometry, storage = draw_geometry(cases), Storage(64, 512)
    as_cost(student.replay_cost(geometry, Policy.BOUNDED_REPLAY, Request(128, 128), storage))  # this one is not
    for request in (Request(100, 128), Request(1000, 64 * int(cases.rng.integers(1, 9)) + 1), Request(1000, -64)):
        for policy in Policy:
            call = lambda r=request, p=policy: student.replay_cost(geometry, p, r, storage)  # noqa: E731
            expect_raises(ValueError, call, given=f"{policy.name}, {request}, blocks of 64")
