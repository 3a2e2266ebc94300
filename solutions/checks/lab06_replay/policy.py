"""Checks of `choose_policy`, on services for which one policy is clearly the fastest.

A policy is also right if it is the fastest by the student's own `replay_cost`, whose slips have cost their points.
"""

import copy
from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, Raised
from labkit.replay.costs import Machine, Policy, Request, Storage

from autograder.checks import Registry, as_member

from .costs import as_cost, draw_geometry

checks = Registry()
check = checks.check

TIED = 1e-9
"""Times closer than this share are equal: sums of up to 20 terms in another order."""

CLEAR = 1.02
"""Elsewhere the second fastest policy takes 2 % more time at least."""


class Service:
    """A geometry, a trace of requests, a storage and a machine."""

    def __init__(self, cases: Any, n_requests: int) -> None:
        self.geometry, self.storage = draw_geometry(cases, window=128), Storage(256, 2048)
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
        return as_member(Policy, got)


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
        own = service.seconds(lambda *given: as_cost(student.replay_cost(*given)))
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
    catches="counts computing or the disk alone, or looks at one request, the slowest for instance",
    hint="the sum of replay_cost(…).seconds(machine) over all requests, for each policy",
    uses=("replay_cost",),
)
def the_fastest_policy_in_all_is_chosen(student: Any, cases: Any) -> None:
    """The policy that keeps disk and processor busy for the shortest time over all requests is chosen."""
    for wanted in (Policy.FULL_CACHE, Policy.CHECKPOINTS, Policy.BOUNDED_REPLAY):
        for _ in range(2):
            _expect_choice(student, _draw_for(cases, wanted, must_be_exact=False), must_be_exact=False)
    _expect_choice(student, _mixed(cases), must_be_exact=False)
    _expect_choice(student, _uneven(cases), must_be_exact=False)
    _expect_choice(student, _draw_for_field(cases, "tokens_recomputed"), must_be_exact=False)
    _expect_choice(student, _draw_for_field(cases, "ssd"), must_be_exact=False)
    _expect_choice(student, _draw_for_field(cases, "unread"), must_be_exact=False)


def _mixed(cases: Any) -> Service:
    """Return a service whose first request, and whose last, would each be served faster by another policy."""
    while True:
        service = Service(cases, 3)
        seconds = service.seconds(fp4kv.replay_cost)
        ends = {_fastest(service.alone(number).seconds(fp4kv.replay_cost), False) for number in (0, -1)}
        if _is_clear(seconds, False) and _fastest(seconds, False) not in ends:
            return service


def _uneven(cases: Any) -> Service:
    """Return a service whose slowest requests would choose another policy than all of them together."""
    while True:
        service = Service(cases, 8)
        each = [service.alone(number).seconds(fp4kv.replay_cost) for number in range(8)]
        slowest = {policy: max(seconds[policy] for seconds in each) for policy in Policy}
        seconds = service.seconds(fp4kv.replay_cost)
        if _is_clear(seconds, False) and _fastest(slowest, False) is not _fastest(seconds, False):
            return service


def _draw_for_field(cases: Any, field: str) -> Service:
    """Return a service for which computing alone, the disk alone, or all but reading, would choose another policy."""
    part = {
        "tokens_recomputed": lambda cost, machine: cost.tokens_recomputed / machine.prefill_tokens_per_second,
        "ssd": lambda cost, machine: cost.ssd_seconds(machine),
        "unread": lambda cost, machine: cost._replace(bytes_loaded=0.0).seconds(machine),
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
    for wanted in (Policy.EXACT_REPLAY, Policy.CHECKPOINTS, Policy.FULL_CACHE):
        service = _draw_for(cases, wanted, must_be_exact=True, n_requests=1)  # sums are another check
        while _fastest(service.seconds(fp4kv.replay_cost), False) is not Policy.BOUNDED_REPLAY:
            service = _draw_for(cases, wanted, must_be_exact=True, n_requests=1)
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
    service.requests.append(Request(2047, 64))  # so that a slip in what a hit of 0 costs leaves something to compare
    service.storage = Storage(64, 2048)  # each replay computes 64 tokens
    service.machine = Machine(1e7, 1e9, 1e7)  # writing a boundary takes longer than computing them
    _expect_choice(student, service, must_be_exact=True)
