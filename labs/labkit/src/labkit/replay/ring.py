"""A ring: the rows of the last few tokens of a window layer, in slots that are used again.

A **position** is the logical place of a token in its text, never reused; a **slot** is a physical place in the ring,
position modulo its length. What was written to a slot stays there until another position falls on it, whoever asks.
"""

from typing import NewType

import numpy as np
from jaxtyping import Int

from labkit.replay.network import Rows

Position = NewType("Position", int)
Slot = NewType("Slot", int)

EMPTY = Position(-1)


class RingCache:
    """The rows of one window layer for one request.

    The ring remembers which position each slot holds, and refuses to read a position that it does not hold: an engine
    without that memory returns another token's row instead. It knows no requests: a row of the same position that an
    earlier request left behind is read like one's own, so clear the ring between requests.

    Raises
    ------
    ValueError
        If the length is below 1.

    Example
    -------
    >>> ring = RingCache(length=3, kv_heads=1, width=2)
    >>> ring.write(np.arange(4), Rows(np.arange(8.0).reshape(1, 4, 2), np.zeros((1, 4, 2))))
    >>> ring.positions
    array([3, 1, 2])
    >>> ring.read(np.array([2, 3])).keys[0]
    array([[4., 5.],
           [6., 7.]])
    """

    def __init__(self, length: int, kv_heads: int, width: int, value_width: int | None = None) -> None:
        if length < 1:
            raise ValueError(f"length: expected at least 1 slot, got {length}")
        self.length = length
        self.keys = np.zeros((kv_heads, length, width))
        self.values = np.zeros((kv_heads, length, width if value_width is None else value_width))
        self.positions = np.full(length, EMPTY)

    def slot_of(self, position: Position) -> Slot:
        """Return the slot on which a position falls."""
        return Slot(position % self.length)

    def write(self, positions: Int[np.ndarray, " m"], rows: Rows) -> None:
        """Write the rows of some positions, one after another, over whatever their slots hold.

        Raises
        ------
        ValueError
            If a position is below 0, or there is not one row for each.
        """
        self._refuse_negative(positions)
        if rows.keys.shape[1] != len(positions) or rows.values.shape[1] != len(positions):
            raise ValueError(f"rows: expected one for each of {len(positions)} positions, got {rows.keys.shape[1]}")
        for number, position in enumerate(positions.tolist()):
            slot = self.slot_of(Position(position))
            self.keys[:, slot], self.values[:, slot] = rows.keys[:, number], rows.values[:, number]
            self.positions[slot] = position

    def read(self, positions: Int[np.ndarray, " m"]) -> Rows:
        """Return the rows of some positions.

        Raises
        ------
        LookupError
            If a slot holds another position.
        ValueError
            If a position is below 0.
        """
        self._refuse_negative(positions)
        slots = np.asarray(positions) % self.length
        for position, held in zip(positions, self.positions[slots], strict=True):
            if position != held:
                what = "nothing" if held == EMPTY else f"position {held}"
                raise LookupError(
                    f"positions: expected rows that the ring holds, got {position}, whose slot holds {what}"
                )
        return Rows(self.keys[:, slots], self.values[:, slots])

    def _refuse_negative(self, positions: Int[np.ndarray, " m"]) -> None:
        if np.min(positions, initial=0) < 0:
            raise ValueError(f"positions: expected at least 0, got {np.min(positions)}; no token is before the first")

    def clear(self) -> None:
        """Forget everything, as before the first token of a request."""
        self.positions[:] = EMPTY
        self.keys[:], self.values[:] = 0, 0
