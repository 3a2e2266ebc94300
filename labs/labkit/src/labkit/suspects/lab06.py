"""Engines that serve requests from a cache, each with one fault or with none, to be found out from outside.

    engine = make_engine(Fault.START, np.random.default_rng(0))
    engine.prefill(tokens)             logits after the last token of a new request, every token computed
    engine.resume(tokens, hit)         the same for a request whose first `hit` tokens an earlier request has computed
    engine.decode(token)               logits after one more token of the request that is running
    engine.draft(tokens)               computes and writes drafts of the next tokens, all of which are rejected
    engine.cached(layer)               rows of the running request: all of a global layer, the last W - 1 of a window

A sound engine has one ring per window layer, which every request uses in turn. A token is attended with the rows that
the window still holds of its own request, and then written. `resume` takes the global rows of the hit from the earlier
request and rebuilds the window rows by replaying the last W tokens before the hit, which read nothing from before their
start and write no global row. After rejected drafts everything is as before them.

Networks have random weights, which nobody outside the engine knows. Layer 0 is always a window layer. Windows, the
number of drafts that an engine is made for, layers, and rings longer than they must be differ from engine to engine.
"""

import enum
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int

from labkit.replay.network import LayerKind, Rows
from labkit.replay.toy import VOCABULARY, ToyNetwork

MAX_TOKENS: Final = 256
"""The longest text that an engine serves."""

MAX_TEXTS: Final = 64
"""Texts whose global rows an engine remembers."""

WINDOWS: Final = (4, 5, 6)
DRAFTS: Final = (2, 3, 4)
STACKS: Final = ("WGW", "WWG", "WGWG", "WWGW")
"""Kinds of the layers, the first layer first."""


class Fault(enum.Enum):
    """What is wrong with an engine."""

    NONE = "nothing"
    WINDOW = "each token of a window layer reads one token more, or one less, than its window"
    START = "a replay reads rows from before its start, whatever the ring holds in their place"
    DRAFTS = "rejected drafts have overwritten rows that are still needed"
    GLOBAL = "a replay writes the global rows of the replayed tokens anew"
    SECOND = "a new request reads rows that the one before it left in the ring"


class Engine:
    """A server of one request at a time. Tokens are whole numbers from 0 to `vocabulary` - 1.

    Raises
    ------
    ValueError
        In every function, if its arguments are no tokens of a text that fits, or there is no such layer.
    """

    def __init__(self, network: ToyNetwork, drafts: int, ring_slots: int, fault: Fault, reads: int) -> None:
        self.window: int = network.window
        self.kinds: tuple[LayerKind, ...] = network.kinds
        self.drafts = drafts
        self.vocabulary: int = VOCABULARY
        self._network, self._fault, self._reads, self._length = network, fault, reads, ring_slots
        shape = network.rows(0, network.embed(np.zeros(1, int)), np.zeros(1, int)).keys.shape
        self._rings = {
            layer: Rows(*(np.zeros((shape[0], ring_slots, shape[2])) for _ in range(2)))
            for layer in self._layers(LayerKind.WINDOW)
        }
        self._n_held = 0
        self._tokens: list[int] = []
        self._global: dict[int, Rows] = {}
        self._texts: list[tuple[list[int], dict[int, Rows]]] = []

    def prefill(self, tokens: Int[np.ndarray, " T"]) -> Float64[np.ndarray, " vocabulary"]:
        """Begin a request and return the logits after its last token; every token is computed."""
        text = _as_tokens(tokens, 1, MAX_TOKENS)
        nothing = {layer: _no_rows(self._rings) for layer in self._layers(LayerKind.GLOBAL)}
        self._begin([], nothing, is_clean=self._fault is not Fault.SECOND)
        return self._compute(text)

    def resume(self, tokens: Int[np.ndarray, " T"], hit: int) -> Float64[np.ndarray, " vocabulary"]:
        """Begin a request whose first `hit` tokens are cached and return the logits after its last token."""
        text = _as_tokens(tokens, 2, MAX_TOKENS)
        if not _is_whole(hit) or not 1 <= hit < len(text):
            raise ValueError(f"hit: expected 1 to {len(text) - 1}, so that a token is left to compute, got {hit}")
        known = next((rows for old, rows in reversed(self._texts) if old[:hit] == text[:hit]), None)
        if known is None:
            raise ValueError(f"tokens: expected the first {hit} of a text served before, got others")
        start = max(0, int(hit) - self.window)
        self._begin(text[:start], known, is_clean=self._fault is not Fault.START)
        for token in text[start:hit]:
            self._feed(token, writes_global=self._fault is Fault.GLOBAL)
        self._global = {layer: _part(rows, 0, int(hit)) for layer, rows in self._global.items()}
        return self._compute(text[hit:])

    def decode(self, token: int) -> Float64[np.ndarray, " vocabulary"]:
        """Return the logits after one more token of the request that is running."""
        (number,) = _as_tokens([token], 1, 1)
        self._require_running()
        if len(self._tokens) >= MAX_TOKENS:
            raise ValueError(f"token: expected a text of at most {MAX_TOKENS}, got one more")
        return self._compute([number])

    def draft(self, tokens: Int[np.ndarray, " n"]) -> None:
        """Compute and write drafts of the next tokens, at most `drafts`, all of which are then rejected."""
        drafts = _as_tokens(tokens, 1, self.drafts)
        self._require_running()
        n_held, n_tokens, rows = self._n_held, len(self._tokens), dict(self._global)
        for token in drafts:
            self._feed(token, writes_global=True)
        self._n_held, self._tokens, self._global = n_held, self._tokens[:n_tokens], rows

    def cached(self, layer: int) -> Rows:
        """Return the rows of the running request in one layer, oldest first."""
        if not _is_whole(layer) or not 0 <= layer < len(self.kinds):
            raise ValueError(f"layer: expected 0 to {len(self.kinds) - 1}, got {layer}")
        self._require_running()
        if layer in self._global:
            return self._global[layer]
        n_tokens = len(self._tokens)
        slots = np.arange(n_tokens - min(n_tokens, self._n_held, self.window - 1), n_tokens) % self._length
        return Rows(*(array[:, slots] for array in self._rings[layer]))

    def _begin(self, tokens: list[int], rows: dict[int, Rows], is_clean: bool) -> None:
        self._tokens, self._global = list(tokens), dict(rows)
        if is_clean:
            self._n_held = 0

    def _compute(self, text: list[int]) -> Float64[np.ndarray, " vocabulary"]:
        for token in text:
            hidden = self._feed(token, writes_global=True)
        self._texts = [*self._texts, (list(self._tokens), dict(self._global))][-MAX_TEXTS:]
        return np.asarray(self._network.logits(hidden)[0])

    def _feed(self, token: int, writes_global: bool) -> Float64[np.ndarray, "1 width"]:
        """Compute one token of the running request, write its rows, and return the output of the last layer."""
        position = len(self._tokens)
        at, hidden = np.array([position]), self._network.embed(np.array([token]))
        for layer in range(len(self.kinds)):
            new = self._network.rows(layer, hidden, at)
            if layer in self._global:
                rows = self._with_global(layer, position, new, writes_global)
                hidden = self._network.attend(layer, hidden, at, rows)
            else:
                rows = self._with_window(layer, position, new)
                hidden = self._network.attend(layer, hidden, at, rows, np.ones((1, rows.keys.shape[1]), bool))
        self._tokens.append(token)
        self._n_held = min(self._n_held + 1, self._length)
        return hidden

    def _with_global(self, layer: int, position: int, new: Rows, is_written: bool) -> Rows:
        old = self._global[layer]
        if is_written:
            joined = zip(_part(old, 0, position), new, _part(old, position + 1, MAX_TOKENS), strict=True)
            old = self._global[layer] = Rows(*(np.concatenate(parts, axis=1) for parts in joined))
        return _part(old, 0, position + 1)

    def _with_window(self, layer: int, position: int, new: Rows) -> Rows:
        """Return the rows that a token reads with its own, which is then written over the slot that it falls on."""
        slots = np.arange(position - min(self._n_held, self._reads - 1), position) % self._length
        ring = self._rings[layer]
        rows = Rows(*(np.concatenate([old[:, slots], own], axis=1) for old, own in zip(ring, new, strict=True)))
        for old, own in zip(ring, new, strict=True):
            old[:, position % self._length] = own[:, 0]
        return rows

    def _layers(self, kind: LayerKind) -> list[int]:
        return [layer for layer, own in enumerate(self.kinds) if own is kind]

    def _require_running(self) -> None:
        if not self._tokens:
            raise ValueError("engine: expected a request that is running, got none; call prefill first")


def make_engine(fault: Fault, rng: np.random.Generator) -> Engine:
    """Return an engine with the given fault, drawn from the generator.

    >>> make_engine(Fault.NONE, np.random.default_rng(0)).prefill(np.arange(9)).shape
    (64,)
    """
    window, drafts = int(rng.choice(WINDOWS)), int(rng.choice(DRAFTS))
    stack = STACKS[int(rng.integers(len(STACKS)))]
    kinds = [LayerKind.WINDOW if letter == "W" else LayerKind.GLOBAL for letter in stack]
    reads = window + int(rng.choice([-1, 1]) if fault is Fault.WINDOW else 0)
    spare = -int(rng.integers(1, drafts + 1)) if fault is Fault.DRAFTS else int(rng.integers(0, 3))
    network = ToyNetwork(window=window, seed=int(rng.integers(2**31)), kinds=kinds)
    return Engine(network, drafts, max(window, reads) - 1 + drafts + spare, fault, reads)


def _as_tokens(tokens: Any, fewest: int, most: int) -> list[int]:
    """Return tokens as whole numbers, if they are such."""
    found = np.asarray(tokens)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError(f"tokens: expected one row of whole numbers, got {found.dtype} of shape {found.shape}")
    if not fewest <= len(found) <= most:
        raise ValueError(f"tokens: expected {fewest} to {most}, got {len(found)}")
    if np.any((found < 0) | (found >= VOCABULARY)):
        raise ValueError(f"tokens: expected numbers from 0 to {VOCABULARY - 1}, got {found.min()} to {found.max()}")
    return [int(token) for token in found]


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _no_rows(rings: dict[int, Rows]) -> Rows:
    return Rows(*(array[:, :0] for array in next(iter(rings.values()))))


def _part(rows: Rows, start: int, stop: int) -> Rows:
    return Rows(rows.keys[:, start:stop], rows.values[:, start:stop])
