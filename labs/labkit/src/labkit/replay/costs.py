"""What a prefix cache stores and loads, in bytes and seconds: geometries, policies, machines.

A *block* is the step in which prefixes can be found again: a hit is a multiple of `block_tokens`. The global rows of
every token are stored under every policy; policies differ in what they do about the window rows, which are as large
for the last W tokens as the global rows of thousands.
"""

import enum
from typing import Final, NamedTuple

from labkit.formats import GROUP_LENGTH, UE8M0_GROUP_LENGTH


class CacheGeometry(NamedTuple):
    """What one request keeps: window rows of the last W tokens, global rows of all tokens."""

    name: str
    window_layers: int
    window: int
    window_row_bytes: int
    """Of one token in one window layer."""

    global_token_bytes: float
    """Of one token, in all layers together."""

    @property
    def window_state_bytes(self) -> int:
        """The window rows of W tokens in all layers, which is what one stored boundary takes."""
        return self.window_layers * self.window * self.window_row_bytes


WINDOW_ROW_BYTES: Final = 512 + 512 // UE8M0_GROUP_LENGTH
"""512 channels in E4M3, one UE8M0 scale per 32."""

GLOBAL_ROW_BYTES: Final = 512 // 2 + 512 // GROUP_LENGTH
"""512 channels in E2M1, one E4M3 scale per 16."""

INDEX_ROW_BYTES: Final = 128 // 2 + 128 // UE8M0_GROUP_LENGTH
"""128 channels in E2M1, one UE8M0 scale per 32: what the index keeps beside each global row."""

GLOBAL_ROWS_PER_TOKEN: Final = 3 / 2 + 1
"""Four layers own global rows, which the others read: three keep a row for two tokens, one a row for each."""

V41_FLASH: Final = CacheGeometry(
    name="DeepSeek V4.1-Flash",
    window_layers=40,
    window=128,
    window_row_bytes=WINDOW_ROW_BYTES,
    global_token_bytes=(GLOBAL_ROW_BYTES + INDEX_ROW_BYTES) * GLOBAL_ROWS_PER_TOKEN,
)
"""Source: public accounts of its serving in vLLM (issue 56935 for the formats) and fastllm (PR 727 for the layers)."""


class Policy(enum.Enum):
    """What a prefix cache does about window rows."""

    FULL_CACHE = "store the window at every block"
    CHECKPOINTS = "store it at every checkpoint, and recompute from there"
    EXACT_REPLAY = "store none, and replay L(W - 1) tokens"
    BOUNDED_REPLAY = "store none, and replay W tokens"


class Storage(NamedTuple):
    """Where prefixes can be found again, and where checkpoints are stored; `checkpoint_tokens` is a multiple of
    `block_tokens`."""

    block_tokens: int = 256
    checkpoint_tokens: int = 2048


class Request(NamedTuple):
    """One request: the length of its prompt, and how much of that was cached, a multiple of the block."""

    prompt_tokens: int
    hit_tokens: int


class Machine(NamedTuple):
    """How fast tokens are computed and bytes move to and from the disk."""

    prefill_tokens_per_second: float
    read_bytes_per_second: float
    write_bytes_per_second: float


class ReplayCost(NamedTuple):
    """What one request costs beside the tokens that are new to the cache."""

    tokens_recomputed: int
    bytes_stored: int
    """Window rows written for boundaries that the request is the first to reach."""

    bytes_loaded: float
    """Global rows of the hit, and window rows where they are used."""

    def ssd_seconds(self, machine: Machine) -> float:
        """Return how long the disk is busy."""
        return self.bytes_stored / machine.write_bytes_per_second + self.bytes_loaded / machine.read_bytes_per_second

    def seconds(self, machine: Machine) -> float:
        """Return how long disk and processor are busy, one after the other."""
        return self.ssd_seconds(machine) + self.tokens_recomputed / machine.prefill_tokens_per_second
