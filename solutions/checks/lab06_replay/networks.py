"""Networks to lend: they count what is fed to them and which rows are computed, and refuse what is no call."""

from collections.abc import Mapping
from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_dtype_and_shape, plain_array
from labkit.replay import LayerKind, Rows, Run, ToyNetwork, cache_of, swa_forward
from labkit.replay.toy import VOCABULARY

MOST_TOKENS = 256
"""Tokens, rows and positions that a lent network takes: every text of these checks is shorter."""

ROOM = 1e-12
"""How far rows may be from the expected ones, over the largest of them.

What is sent over and back is the same number, so that only the order of sums differs, in products of whole batches: a
few steps of 2^-53 in each of up to 4 layers, each of which makes an error less than ten times larger. The largest over
1,600 drawn networks was 2e-15."""

APART = 1e-8
"""Where one token fewer would do, or the exact rows for the bounded ones, rows differ by more than this."""

STACKS = {"W": LayerKind.WINDOW, "G": LayerKind.GLOBAL}


class CountingNetwork:
    """A toy network that says what it was asked.

    Unless it `turns` tokens by the positions that it is given, it takes them to begin at `start`: whoever counts from
    another number on loses the check of positions, and no other.
    """

    def __init__(self, network: ToyNetwork, start: int, turns: bool = False) -> None:
        self.kinds, self.window = network.kinds, network.window
        self.fed: list[int] = []
        self.computed: list[int] = []
        self._network, self._start = network, start
        self._shift: int | None = 0 if turns else None
        _, self._heads, self._width, _ = network.to_key.shape

    def embed(self, tokens: Any) -> np.ndarray:
        """Feed tokens."""
        fed = _whole(tokens, "tokens", VOCABULARY)
        self.fed += fed.tolist()
        return self._network.embed(fed)

    def rows(self, layer: Any, hidden: Any, positions: Any) -> Rows:
        """Return what a layer caches for tokens."""
        layer, hidden = self._layer(layer), self._hidden(hidden)
        self.computed.append(layer)
        return self._network.rows(layer, hidden, self._positions(positions, len(hidden)))

    def attend(self, layer: Any, hidden: Any, positions: Any, rows: Any, is_visible: Any = None) -> np.ndarray:
        """Return the output of a layer."""
        layer, hidden, cached = self._layer(layer), self._hidden(hidden), self._rows(rows)
        mask = None if is_visible is None else self._mask(is_visible, (len(hidden), cached.keys.shape[1]))
        return self._network.attend(layer, hidden, self._positions(positions, len(hidden)), cached, mask)

    def logits(self, hidden: Any) -> np.ndarray:
        """Return the logits of the next token."""
        return self._network.logits(self._hidden(hidden))

    def _layer(self, layer: Any) -> int:
        (number,) = _whole([layer], "layer", len(self.kinds))
        return int(number)

    def _hidden(self, hidden: Any) -> np.ndarray:
        return _floats(hidden, "hidden", (None, self._width))

    def _positions(self, positions: Any, n_tokens: int) -> np.ndarray:
        found = _whole(positions, "positions", MOST_TOKENS)
        if len(found) != n_tokens:
            raise ValueError(f"positions: expected one for each of {n_tokens} tokens, got {len(found)}")
        if self._shift is None and len(found):
            self._shift = self._start - int(found[0])
        moved = found + (self._shift or 0)
        if np.any(moved < 0):
            raise ValueError(f"positions: expected them to grow from the first one on, got {found.min()}")
        return np.asarray(moved)

    def _rows(self, rows: Any) -> Rows:
        if not isinstance(rows, tuple | list) or len(rows) != 2:
            raise ValueError(f"rows: expected keys and values, got a {type(rows).__name__}")
        shape = (self._heads, None, self._width)
        keys, values = (_floats(part, name, shape) for part, name in zip(rows, Rows._fields, strict=True))
        if keys.shape != values.shape:
            raise ValueError(f"rows: expected as many keys as values, got {keys.shape[1]} and {values.shape[1]}")
        return Rows(keys, values)

    def _mask(self, is_visible: Any, shape: tuple[int, int]) -> np.ndarray:
        found = np.asarray(is_visible)
        if found.dtype != bool or found.shape != shape:
            raise ValueError(f"is_visible: expected bool of shape {shape}, got {found.dtype} of shape {found.shape}")
        if not found.any(axis=-1).all():
            raise ValueError("is_visible: expected a row for every token, got a token that reads none")
        return found


def _whole(numbers: Any, name: str, end: int) -> np.ndarray:
    found = np.asarray(numbers)
    if found.size == 0 and found.ndim == 1:
        return np.zeros(0, int)
    if found.ndim != 1 or found.dtype.kind not in "iu" or len(found) > MOST_TOKENS:
        raise ValueError(f"{name}: expected one row of up to {MOST_TOKENS} whole numbers, got shape {found.shape}")
    if np.any((found < 0) | (found >= end)):
        raise ValueError(f"{name}: expected numbers from 0 to {end - 1}, got {found.min()} to {found.max()}")
    return found.astype(int)


def _floats(numbers: Any, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    found = np.asarray(numbers)
    fits = found.ndim == len(shape) and all(n in (None, own) for n, own in zip(shape, found.shape, strict=True))
    if found.dtype.kind != "f" or not fits or max(found.shape) > MOST_TOKENS:
        raise ValueError(f"{name}: expected float64 of shape {shape}, got {found.dtype} of shape {found.shape}")
    return found.astype(np.float64)


class Text:
    """A drawn network and text, what a cold run leaves of its first `hit` tokens, and fresh networks to lend."""

    def __init__(self, cases: Any, stack: str, window: int, hit: int, turns: bool = False, **options: Any) -> None:
        self.cases, self.hit, self.window, self._turns = cases, hit, window, turns
        self.tokens = cases.rng.integers(0, VOCABULARY, hit + int(cases.rng.integers(1, 8)))
        kinds = [STACKS[letter] for letter in stack]
        self._network = ToyNetwork(window=window, seed=int(cases.rng.integers(2**31)), kinds=kinds, **options)
        self.cold = cache_of(self._run(), self._network, hit)
        self.kept = {layer: self.cold[layer] for layer, letter in enumerate(stack) if letter == "G"}
        self.windows = [layer for layer, letter in enumerate(stack) if letter == "W"]

    @property
    def n_rows(self) -> int:
        """How many rows of a window layer there are to rebuild."""
        return min(self.hit, self.window - 1)

    def network(self, replay_tokens: int = MOST_TOKENS) -> CountingNetwork:
        """Return the network, with nothing counted yet, for a replay of so many tokens."""
        return CountingNetwork(self._network, max(0, self.hit - replay_tokens), self._turns)

    def lend(self, network: CountingNetwork) -> Any:
        """Return it as an argument for a student's function."""
        return self.cases.lend(network, methods=("embed", "rows", "attend", "logits"), attributes=("kinds", "window"))

    def replayed(self, replay_tokens: int, is_visible: Any = None) -> list[Rows]:
        """Return the rows that a replay of so many tokens leaves, with the mask of the window or with another."""
        network, positions = self.network(replay_tokens), np.arange(max(0, self.hit - replay_tokens), self.hit)
        if is_visible is None:
            is_visible = fp4kv.window_mask(positions, positions, self.window)
        hidden, cache = network.embed(self.tokens[positions]), []
        for layer in range(len(network.kinds)):
            if layer in self.kept:
                cache.append(self.kept[layer])
                hidden = network.attend(layer, hidden, positions, self.kept[layer])
                continue
            rows = network.rows(layer, hidden, positions)
            hidden = network.attend(layer, hidden, positions, rows, is_visible)
            cache.append(Rows(*(array[:, len(positions) - self.n_rows :] for array in rows)))
        return cache

    def _run(self) -> Run:
        return swa_forward(self.network(), self.tokens[: self.hit])


def draw_text(cases: Any, stack: str, window: int, hit: int, replay_tokens: int, **options: Any) -> Text:
    """Return a text whose rows after a replay of so many tokens differ from the exact ones in the top window layer."""
    while True:
        text = Text(cases, stack, window, hit, **options)
        top = text.windows[-1]
        if np.abs(text.replayed(replay_tokens)[top].values - text.cold[top].values).max() > APART:
            return text


def as_cache(got: Any, n_layers: int) -> list[Rows]:
    """Return rows by layer, if the answer has the parts of that."""
    if not isinstance(got, list | tuple) or len(got) != n_layers:
        size = f" of {len(got)}" if isinstance(got, list | tuple) else ""
        raise Mismatch(f"a list of {n_layers} Rows, one for each layer", f"a {type(got).__name__}{size}")
    cache = []
    for layer, rows in enumerate(got):
        if not isinstance(rows, list | tuple) or len(rows) != 2:
            raise Mismatch(f"Rows(keys, values) for layer {layer}", f"a {type(rows).__name__}")
        keys, values = (plain_array(part) for part in rows)
        if keys.dtype.kind != "f" or keys.ndim != 3 or keys.shape != values.shape or values.dtype.kind != "f":
            raise Mismatch(f"keys and values of one shape for layer {layer}", f"{keys.shape} and {values.shape}")
        cache.append(Rows(keys, values))
    return cache


def is_near(got: np.ndarray, expected: np.ndarray) -> bool:
    """Tell whether rows are the expected ones, up to the order of sums; of more rows the last ones count."""
    n_rows = expected.shape[1]
    last = got[:, got.shape[1] - n_rows :] if got.shape[1] >= n_rows else got
    room = ROOM * np.abs(expected).max(initial=0)
    return last.shape == expected.shape and bool(np.all(np.abs(last - expected) <= room))


def expect_rows(
    got: list[Rows], expected: list[Rows], layers: list[int], fields: Mapping[str, str], given: str
) -> None:
    """Expect the rows of some layers, from the last one back; `fields` are those compared, and what to call them."""
    for layer in layers:
        for field, word in fields.items():
            mine, wanted = getattr(got[layer], field), getattr(expected[layer], field)
            if not is_near(mine, wanted):
                _refuse(mine, wanted, f"{word} of layer {layer}", given)


def _refuse(got: np.ndarray, expected: np.ndarray, what: str, given: str) -> None:
    n_rows = expected.shape[1]
    if got.shape[1] >= n_rows:
        got = got[:, got.shape[1] - n_rows :]
    expect_dtype_and_shape(got, expected, given, any_width=True)
    far = int(np.argmax(np.abs(got - expected).max(axis=(0, 2))))
    distance = float(np.abs(got - expected)[:, far].max())
    raise Mismatch(f"the {what}, of the last {n_rows} positions", f"row {far} of them off by {distance:.2g}", given)


def own_mask(student: Any, text: Text, replay_tokens: int) -> np.ndarray | None:
    """Return the student's own mask of the replayed tokens, if it can be one and is another than the right one."""
    positions = np.arange(max(0, text.hit - replay_tokens), text.hit)
    mask = plain_array(student.window_mask(positions, positions, text.window))
    if mask.dtype != bool or mask.shape != (len(positions), len(positions)) or not mask.any(axis=-1).all():
        return None
    return None if np.array_equal(mask, fp4kv.window_mask(positions, positions, text.window)) else mask
