"""CuPy's rules for the arguments of a kernel, said: what it would pass, and whether the kernel takes that.

An array is passed as a pointer. A NumPy scalar keeps its dtype. A Python int is passed as 8 bytes, a float as 8 bytes
(a double), a bool as one byte, None as a null pointer. A kernel that takes a `float` and is given a Python float reads
half of a double: CuPy computes garbage, and this module says so instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from labkit.cuda.errors import LaunchError

_PYTHON_NUMBERS: Final[dict[type, type[np.generic]]] = {
    bool: np.bool_,
    int: np.int64,
    float: np.float64,
    complex: np.complex128,
}
_PAGE: Final = 4096
_ALIGNMENT: Final = 256
"""Bytes: where CUDA's own allocations begin, so a float4 of any array is aligned."""


@dataclass(frozen=True)
class Stretch:
    """Memory that one array lies in, or several that overlap: its bytes in this process, and its place in the file."""

    address: int
    n_bytes: int
    element_bytes: int
    file_offset: int

    @property
    def body_offset(self) -> int:
        """Where its first byte is in the file: it ends near the end of a page, as the runner maps it."""
        body = -(-self.n_bytes // _PAGE) * _PAGE
        return self.file_offset + ((body - self.n_bytes) // _ALIGNMENT * _ALIGNMENT)

    @property
    def pages(self) -> int:
        """Its bytes in the file."""
        return -(-self.n_bytes // _PAGE) * _PAGE


@dataclass(frozen=True)
class Arguments:
    """The arguments of one launch, packed: what each is, and the memory that the arrays share."""

    values: tuple[Any, ...]
    names: tuple[str, ...]
    stretches: tuple[Stretch, ...]
    lines: tuple[str, ...]
    """One line for each argument, as the runner reads them."""

    def name(self, position: int) -> str:
        """Return how a message calls an argument."""
        return self.names[position] if position < len(self.names) else f"argument {position}"

    def array_at(self, stretch: int, offset: int) -> tuple[int, int]:
        """Return which array a byte of a stretch is in, or is nearest to, and the byte counted from its beginning."""
        address = self.stretches[stretch].address + offset
        inside = [
            i
            for i, value in enumerate(self.values)
            if isinstance(value, np.ndarray) and _is_in(value, self.stretches[stretch])
        ]
        position = min(inside, key=lambda i: _distance(self.values[i], address))
        return position, address - _address(self.values[position])


def pack(values: Sequence[Any], names: tuple[str, ...]) -> Arguments:
    """Pack the arguments as CuPy would; LaunchError for what CuPy cannot pass, or passes as garbage."""
    values = tuple(values)
    for position, value in enumerate(values):
        if isinstance(value, np.ndarray):
            _require_array(position, value, names)
    stretches = _lay_out([value for value in values if isinstance(value, np.ndarray)])
    lines = tuple(_line(position, value, names, stretches) for position, value in enumerate(values))
    return Arguments(values, names, stretches, lines)


def call_it(position: int, names: tuple[str, ...]) -> str:
    """Return an argument's place and, where the source names it, its name."""
    return f"args[{position}] ({names[position]})" if position < len(names) else f"args[{position}]"


def passed_as(value: Any) -> str:
    """Say how CuPy passes a number: `3.0, which is passed as 8-byte float64`."""
    number = _as_numpy(value)
    return f"{value!r}, which is passed as {number.dtype.itemsize}-byte {number.dtype.name}"


def _require_array(position: int, array: np.ndarray[Any, Any], names: tuple[str, ...]) -> None:
    if array.dtype.hasobject:
        raise LaunchError(
            "argument", f"{call_it(position, names)}: expected an array of numbers, got dtype {array.dtype}"
        )
    if not array.flags.c_contiguous:
        raise LaunchError(
            "argument",
            f"{call_it(position, names)}: expected a C-contiguous array, "
            f"got shape {array.shape} with strides {array.strides}.\n"
            "  A kernel sees the bytes as they lie in memory. Pass xp.ascontiguousarray(…) of it.",
        )


def _line(position: int, value: Any, names: tuple[str, ...], stretches: tuple[Stretch, ...]) -> str:
    if isinstance(value, np.ndarray):
        number = next(i for i, stretch in enumerate(stretches) if _is_in(value, stretch))
        kind = _kind(value.dtype)
        return f"array {number} {_address(value) - stretches[number].address} {kind} {value.itemsize}"
    if value is None:
        return f"null p {np.dtype(np.intp).itemsize} {'00' * 8}"
    scalar = _as_numpy_or_refuse(position, value, names)
    data, kind = scalar.tobytes(), _kind(scalar.dtype)
    kind = "n" if type(value) is int else kind  # a Python int fits any integer that can hold it
    return f"number {kind} {len(data)} {data.hex()}"


def _kind(dtype: np.dtype[Any]) -> str:
    return "f" if dtype.kind == "f" else "s" if dtype.kind in "cV" and dtype.itemsize > 2 else "i"


def _as_numpy(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value, dtype=None if isinstance(value, np.generic) else _PYTHON_NUMBERS.get(type(value)))


def _as_numpy_or_refuse(position: int, value: Any, names: tuple[str, ...]) -> np.ndarray[Any, Any]:
    if not isinstance(value, np.generic) and type(value) not in _PYTHON_NUMBERS:
        raise LaunchError(
            "argument",
            f"{call_it(position, names)}: expected an array or a number, got {type(value).__name__}.\n"
            "  Make an array of it with xp.asarray(…).",
        )
    try:
        scalar = _as_numpy(value)
    except OverflowError:
        raise LaunchError(
            "argument", f"{call_it(position, names)}: expected an integer of 8 bytes, got {value}"
        ) from None
    return scalar


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _is_in(array: np.ndarray[Any, Any], stretch: Stretch) -> bool:
    return stretch.address <= _address(array) and _address(array) + array.nbytes <= stretch.address + stretch.n_bytes


def _distance(array: np.ndarray[Any, Any], address: int) -> int:
    low, high = _address(array), _address(array) + array.nbytes
    return max(low - address, 0, address - high + 1)


def _lay_out(arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[Stretch, ...]:
    """Join arrays that overlap, an output that is its own input above all, and give each stretch its pages."""
    stretches: list[Stretch] = []
    for array in sorted(arrays, key=lambda a: (_address(a), -a.nbytes)):
        address, n_bytes, element = _address(array), array.nbytes, array.itemsize
        last = stretches[-1] if stretches else None
        same = last is not None and (
            address < last.address + last.n_bytes or (address == last.address and n_bytes == last.n_bytes)
        )
        if last is not None and same:
            end = max(last.address + last.n_bytes, address + n_bytes)
            stretches[-1] = Stretch(
                last.address, end - last.address, min(last.element_bytes, element), last.file_offset
            )
        else:
            offset = last.file_offset + last.pages if last else 0
            stretches.append(Stretch(address, n_bytes, element, offset))
    return tuple(stretches)
