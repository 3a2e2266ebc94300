"""Arguments as they are after a call: they belong to the caller."""

from typing import Any

import numpy as np
from labkit.expect import Mismatch


def expect_untouched(after: Any, before: Any, name: str) -> None:
    """Expect an argument to be what it was before the call, whatever the function made of it."""
    if not _is_same(after, before):
        raise Mismatch(f"your argument {name} as it was", "another one after the call", "the caller's arguments")


def _is_same(after: Any, before: Any) -> bool:
    if isinstance(before, dict):
        is_whole = isinstance(after, dict) and after.keys() == before.keys()
        return is_whole and all(_is_same(after[key], part) for key, part in before.items())
    if isinstance(before, list | tuple):
        is_whole = isinstance(after, list | tuple) and len(after) == len(before)
        return is_whole and all(_is_same(*pair) for pair in zip(after, before, strict=True))
    if isinstance(before, np.ndarray):
        return isinstance(after, np.ndarray) and after.dtype == before.dtype and np.array_equal(after, before)
    return type(after) is type(before) and bool(after == before)
