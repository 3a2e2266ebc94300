"""How the given parts refuse what they cannot take: one sentence with the argument, the rule and what came."""

from typing import Any

import numpy as np
from jaxtyping import Float32

Array = np.ndarray


def require(holds: bool, name: str, rule: str, got: Any, kind: type[Exception] = ValueError) -> None:
    """Raise `<name>: expected <rule>, got <got>` unless the rule holds."""
    if not holds:
        raise kind(f"{name}: expected {rule}, got {got}")


def require_all(holds: Array | np.bool_, name: str, rule: str, values: Array) -> None:
    """Raise, with the value and the index of the first for which the rule does not hold."""
    if not np.all(holds):
        first = tuple(map(int, np.argwhere(np.logical_not(holds))[0]))
        require(False, name, rule, f"{values[first]} at index {first}")


def require_codes(codes: Array) -> None:
    """Raise unless these are 4-bit codes in bytes."""
    hint = f"{codes.dtype}; call .astype(np.uint8) if they are whole"
    require(codes.dtype == np.uint8, "codes", "uint8", hint, TypeError)
    require_all(codes < 16, "codes", "codes from 0 to 15", codes)


def finite_float32(x: Array) -> Float32[np.ndarray, "..."]:
    """Return the values as float32; raise at the first that is not finite there."""
    with np.errstate(over="ignore"):
        narrow = np.asarray(x, np.float32)
    require_all(np.isfinite(narrow), "x", "finite float32 values", narrow)
    return narrow
