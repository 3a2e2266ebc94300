"""A synthetic trace of a prefix cache: what requests of chats and about documents find there, and what that costs.

    trace = synthetic_trace(seed=0, storage=Storage())
    trace[:2]                                    [Request(prompt_tokens=..., hit_tokens=0), ...]
    total(trace, [replay_cost(V41_FLASH, policy, request, Storage()) for request in trace], ASSUMED_MACHINE)

A chat starts with one of a few system prompts, which chats share, and grows: each prompt holds all messages and answers
before it. A document is asked about several times, with the document in front of the question. Chats and documents
overlap in time. Lengths are lognormal, numbers of turns geometric; the constants below are assumptions, of no service.

A hit is what the cache finds: the longest run of whole blocks, from the first token on, that some earlier prompt began
with; one token at least is left to compute. Prompts are cached, answers are not until the next prompt holds them.
Nothing is ever evicted, so the hits are the most that any capacity gives.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int64

from labkit.replay.costs import Machine, ReplayCost, Request, Storage

SYSTEM_PROMPT_TOKENS: Final = (400, 1200, 3000, 6000)
"""Shared by chats, each twice as often as the next."""

MESSAGE_TOKENS: Final = 120
ANSWER_TOKENS: Final = 350
DOCUMENT_TOKENS: Final = 9000
"""Medians of lognormal lengths."""

SPREAD: Final = 0.8
"""Standard deviation of the logarithm of a length: two in three lie within a factor of 2.2 of the median."""

TURNS: Final = 6
QUESTIONS: Final = 4
"""Means of geometric numbers: messages of a chat, questions to a document."""

SECONDS_BETWEEN: Final = 60.0
"""The mean time between the prompts of one chat or document; they all start within an hour."""

ASSUMED_MACHINE: Final = Machine(
    prefill_tokens_per_second=20_000, read_bytes_per_second=6e9, write_bytes_per_second=3e9
)
"""Round numbers to compare policies at, of no product: a large model on several accelerators, a disk of their own."""

ASSUMED_SHARED_DISK: Final = Machine(
    prefill_tokens_per_second=20_000, read_bytes_per_second=6e8, write_bytes_per_second=3e8
)
"""The same, with a tenth of the disk."""

Tokens = Int64[np.ndarray, " _"]


def synthetic_trace(seed: int, storage: Storage, chats: int = 100, documents: int = 30) -> list[Request]:
    """Return requests in the order of their arrival, with what each found in the cache.

    Raises
    ------
    ValueError
        If `chats` or `documents` is below 0, or a block has no token.

    Example
    -------
    >>> synthetic_trace(seed=0, storage=Storage(block_tokens=256), chats=1, documents=0)[:2]
    [Request(prompt_tokens=1360, hit_tokens=0), Request(prompt_tokens=2264, hit_tokens=1280)]
    """
    for name, value in (("chats", chats), ("documents", documents)):
        if value < 0:
            raise ValueError(f"{name}: expected at least 0, got {value}")
    rng = np.random.default_rng(seed)
    systems = [_text(rng, n_tokens) for n_tokens in SYSTEM_PROMPT_TOKENS]
    share = 0.5 ** np.arange(len(systems))
    arrivals: list[tuple[float, Tokens]] = []
    for _ in range(chats):
        arrivals += _over_time(rng, _chat(rng, systems[rng.choice(len(systems), p=share / share.sum())]))
    for _ in range(documents):
        arrivals += _over_time(rng, _questions(rng))
    arrivals.sort(key=lambda arrival: arrival[0])
    return find_hits([prompt for _, prompt in arrivals], storage.block_tokens)


def find_hits(prompts: Sequence[Tokens], block_tokens: int) -> list[Request]:
    """Return each prompt as a request: its length, and the blocks from its start that an earlier prompt had too.

    Raises
    ------
    ValueError
        If `block_tokens` is below 1.

    Example
    -------
    >>> find_hits([np.arange(255), np.arange(300)], block_tokens=128)
    [Request(prompt_tokens=255, hit_tokens=0), Request(prompt_tokens=300, hit_tokens=128)]
    """
    if block_tokens < 1:
        raise ValueError(f"block_tokens: expected at least 1, got {block_tokens}")
    cached: set[bytes] = set()
    found = []
    for prompt in prompts:
        names = list(_block_names(prompt, block_tokens))
        n_cached = next((number for number, name in enumerate(names) if name not in cached), len(names))
        most = max(0, len(prompt) - 1) // block_tokens
        found.append(Request(len(prompt), min(n_cached, most) * block_tokens))
        cached.update(names)
    return found


def _block_names(prompt: Tokens, block_tokens: int) -> Iterator[bytes]:
    """Yield a name for each whole block, which depends on all tokens up to its end."""
    name = b""
    for stop in range(block_tokens, len(prompt) + 1, block_tokens):
        name = hashlib.blake2b(name + prompt[stop - block_tokens : stop].tobytes(), digest_size=16).digest()
        yield name


def _chat(rng: np.random.Generator, system: Tokens) -> Iterator[Tokens]:
    said = [system]
    for _ in range(rng.geometric(1 / TURNS)):
        said.append(_text(rng, _length(rng, MESSAGE_TOKENS)))
        yield np.concatenate(said)
        said.append(_text(rng, _length(rng, ANSWER_TOKENS)))


def _questions(rng: np.random.Generator) -> Iterator[Tokens]:
    document = _text(rng, _length(rng, DOCUMENT_TOKENS))
    for _ in range(rng.geometric(1 / QUESTIONS)):
        yield np.concatenate([document, _text(rng, _length(rng, MESSAGE_TOKENS))])


def _over_time(rng: np.random.Generator, prompts: Iterator[Tokens]) -> Iterator[tuple[float, Tokens]]:
    now = rng.uniform(0, 3600)
    for prompt in prompts:
        yield now, prompt
        now += rng.exponential(SECONDS_BETWEEN)


def _length(rng: np.random.Generator, median: int) -> int:
    return 1 + int(rng.lognormal(np.log(median), SPREAD))


def _text(rng: np.random.Generator, n_tokens: int) -> Tokens:
    return rng.integers(0, 2**31, n_tokens)


class Totals(NamedTuple):
    """What a policy makes of a trace."""

    bytes_stored: int
    bytes_loaded: float
    tokens_recomputed: int
    mean_first_token_s: float
    p95_first_token_s: float


def total(trace: Sequence[Request], costs: Sequence[ReplayCost], machine: Machine) -> Totals:
    """Return the sums over a trace, and how long its requests wait for their first token.

    Raises
    ------
    ValueError
        If there is no request, or not one cost for each.
    """
    if not trace:
        raise ValueError("trace: expected at least one request, got none")
    if len(costs) != len(trace):
        raise ValueError(f"costs: expected one for each of {len(trace)} requests, got {len(costs)}")
    waits = [first_token_seconds(request, cost, machine) for request, cost in zip(trace, costs, strict=True)]
    return Totals(
        sum(cost.bytes_stored for cost in costs),
        sum(cost.bytes_loaded for cost in costs),
        sum(cost.tokens_recomputed for cost in costs),
        float(np.mean(waits)),
        float(np.percentile(waits, 95)),
    )


def first_token_seconds(request: Request, cost: ReplayCost, machine: Machine) -> float:
    """Return the time to first token: load, then compute what must be computed again and what is new.

    A replayed token takes as long as any other, nothing waits in a queue, and writing is done behind the request.
    """
    n_computed = cost.tokens_recomputed + request.prompt_tokens - request.hit_tokens
    return cost.bytes_loaded / machine.read_bytes_per_second + n_computed / machine.prefill_tokens_per_second
