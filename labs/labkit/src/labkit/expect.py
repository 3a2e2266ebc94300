"""Compare an answer with what was expected, and say where it differs first.

Used in the visible cells of a lab and by the judge, which runs outside the kernel. An answer is accepted as
plain data only (numbers, lists of numbers, NumPy arrays of numbers): an object that claims to equal everything
is a `Mismatch`. Dtype and shape are compared before values.

    expect_codes(encode_e2m1(x), expected, given=x)      E2M1 codes, shown with their bits
    expect_bytes(pack_nibbles(codes), expected, given=codes)
    expect_values(decode_e2m1(codes), expected, given=codes)
    expect_close(dequantise(q), expected, tolerance, given=x)
    expect_raises(ValueError, lambda: encode_e2m1(x), given=x, naming=(3,))
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.formats import code_fields

WHOLE_INPUT = 32
"""Inputs of up to this many elements are shown whole."""

_NUMPY_SCALARS = frozenset(np.sctypeDict.values())  # NumPy's own: a subclass may compare as it likes


class Mismatch(AssertionError):  # noqa: N818 - a verdict on an answer, not a fault of ours
    """An answer differs: what was given, what was expected, what came, and where."""

    def __init__(
        self, expected: str, got: str, given: str = "", index: tuple[int, ...] | None = None, hint: str = ""
    ) -> None:
        self.given, self.expected, self.got, self.index, self.hint = given, expected, got, index, hint
        super().__init__("\n" + "\n".join(self.lines()))

    def lines(self) -> list[str]:
        """Return the message line by line: given, expected, got and, if there is one, the hint."""
        place = "" if not self.index else f" at index {_show_index(self.index)}"
        labelled = [("given", self.given), ("expected", self.expected + place), ("got", self.got), ("hint", self.hint)]
        return [f"{label:<8} {text}" for label, text in labelled if text]


class Raised(Exception):  # noqa: N818 - what happened, not a fault of ours
    """An exception that was raised elsewhere, in the student's kernel, and came back as data.

    `kinds` are the names of its class and of the class's bases.
    """

    def __init__(self, kinds: tuple[str, ...], message: str) -> None:
        super().__init__(f"{kinds[0]}: {message}")
        self.kinds, self.message = kinds, message


def expect_codes(got: Any, expected: Any, given: Any, hint: str = "") -> None:
    """Compare E2M1 codes and show the first that differs with its bits: `0b0_11_1`."""
    _compare(got, expected, given, hint, show=show_code)


def expect_bytes(got: Any, expected: Any, given: Any, hint: str = "") -> None:
    """Compare packed bytes and show the first that differs with its halves: `0b0111_0010`."""
    _compare(got, expected, given, hint, show=show_byte)


def expect_values(
    got: Any, expected: Any, given: Any, hint: str = "", *, signed_zeros: bool = False, any_width: bool = False
) -> None:
    """Compare numbers bit for bit; 0.0 and -0.0 differ only with `signed_zeros`, NaN equals NaN.

    With `any_width`, any dtype of the expected kind will do (int64 for int32, float64 for float32).
    """
    _compare(got, expected, given, hint, any_width=any_width, signed_zeros=signed_zeros)


def expect_close(got: Any, expected: Any, tolerance: Any, given: Any, hint: str = "") -> None:
    """Compare numbers: each may be off by at most `tolerance`, a number or an array; NaN is never close."""
    wanted = np.asarray(expected)
    found = expect_dtype_and_shape(got, wanted, given, hint, any_width=True)
    with np.errstate(invalid="ignore", over="ignore"):
        far = ~(np.abs(found.astype(np.float64) - wanted) <= tolerance)
    if (index := _first(far)) is not None:
        allowed = np.broadcast_to(tolerance, wanted.shape)[index]
        within = f"{show_number(wanted[index])} ± {show_number(allowed)}"
        raise Mismatch(within, show_number(found[index]), show_given(given, index, wanted.shape), index, hint)


def expect_dtype_and_shape(
    got: Any, expected: Any, given: Any, hint: str = "", *, any_width: bool = False
) -> np.ndarray:
    """Compare dtype and shape, in this order, and return the answer as an array of its own."""
    wanted, found = np.asarray(expected), plain_array(got, given)
    any_width = any_width or type(got) is not np.ndarray  # numbers and lists of Python have no width to get wrong
    if found.dtype != wanted.dtype and not (any_width and found.dtype.kind in _same_kinds(wanted.dtype)):
        raise Mismatch(f"dtype {wanted.dtype}", f"dtype {found.dtype}", show_given(given), None, hint)
    if found.shape != wanted.shape:
        raise Mismatch(f"shape {wanted.shape}", f"shape {found.shape}", show_given(given), None, hint)
    return found


def expect_raises(
    error: type[Exception],
    call: Callable[[], Any],
    given: Any,
    naming: str | tuple[int, ...] = (),
    hint: str = "",
) -> None:
    """Call, and demand an `error` whose message holds a text, or the numbers of an index in their order.

    An exception of another class is not caught: it says more than we could.
    """
    wanted = error.__name__ + (
        f" naming {naming if isinstance(naming, str) else _show_index(naming)}" if naming else ""
    )
    try:
        got = call()
    except (error, Raised) as raised:
        kinds = raised.kinds if isinstance(raised, Raised) else (error.__name__,)
        message = raised.message if isinstance(raised, Raised) else str(raised)
        if error.__name__ in kinds and _names(message, naming):
            return
        if "NotImplementedError" in kinds:
            raise  # a task that was not attempted, not a wrong answer
        kind = kinds[0] if isinstance(raised, Raised) else type(raised).__name__
        raise Mismatch(wanted, f"{kind}: {message}", show_given(given), None, hint) from None
    raise Mismatch(wanted, f"{_show_answer(got)} and no error", show_given(given), None, hint)


def plain_array(got: Any, given: Any = "") -> np.ndarray:
    """Return a copy of plain data as an array; anything else is a `Mismatch`."""
    if _is_plain(got):
        try:
            found = np.array(got)
        except ValueError:
            raise Mismatch("an array", "lists of unequal lengths", show_given(given)) from None
        if found.dtype.kind != "O":
            return found
        raise Mismatch("numbers that an array holds", "a whole number beyond 64 bits", show_given(given))
    raise Mismatch("a NumPy array of numbers", _show_answer(got), show_given(given))


def show_code(code: Any) -> str:
    """Return a code with its fields separated: sign, exponent, mantissa."""
    c = int(code)
    return f"code {c} = {code_fields(c)}" if 0 <= c < 16 else f"{c}, which is no 4-bit code"


def show_byte(byte: Any) -> str:
    """Return a byte with its halves separated, the high one first."""
    return f"byte {int(byte):#04x} = 0b{int(byte) >> 4:04b}_{int(byte) & 0b1111:04b}"


def show_number(number: Any) -> str:
    """Return the shortest text that reads back as the same number of its type."""
    return str(np.asarray(number)[()])


def show_given(given: Any, index: tuple[int, ...] | None = None, shape: tuple[int, ...] = ()) -> str:
    """Return an input for a message: its element at `index` where shapes agree, else the whole of a small one.

    A large array of another shape is named by dtype and shape, never cut. A dict or record is shown entry by entry.
    """
    if isinstance(given, tuple) and hasattr(given, "_asdict"):
        given = given._asdict()
    if isinstance(given, dict):
        return ", ".join(f"{name} = {show_given(value, index, shape)}" for name, value in given.items())
    if not isinstance(given, np.ndarray | list | tuple):
        return show_number(given) if isinstance(given, np.generic) else str(given)
    try:
        array = np.asarray(given)
    except ValueError:  # parts of unequal shape
        return "[" + ", ".join(show_given(part, index, shape) for part in given) + "]"
    if index and array.shape == shape:
        return show_number(array[index])
    if array.size <= WHOLE_INPUT:
        return _show_whole(array.tolist() if array.dtype.kind not in "fc" else array)
    return f"an array of {array.dtype} with shape {array.shape}"


def _compare(
    got: Any,
    expected: Any,
    given: Any,
    hint: str,
    show: Callable[[Any], str] | None = None,
    any_width: bool = False,
    signed_zeros: bool = False,
) -> None:
    wanted, show = np.asarray(expected), show or show_number
    found = expect_dtype_and_shape(got, wanted, given, hint, any_width=any_width)
    differs = (found != wanted) & ~((found != found) & (wanted != wanted))
    if signed_zeros:
        differs |= np.signbit(found) != np.signbit(wanted)
    if (index := _first(differs)) is not None:
        raise Mismatch(show(wanted[index]), show(found[index]), show_given(given, index, wanted.shape), index, hint)


def _first(differs: np.ndarray | np.bool_) -> tuple[int, ...] | None:
    return tuple(np.argwhere(differs)[0].tolist()) if np.any(differs) else None


def _is_plain(got: Any) -> bool:
    if type(got) in (list, tuple):
        return all(_is_plain(item) for item in got)
    if type(got) in (bool, int, float):
        return True
    is_numpy = type(got) is np.ndarray or type(got) in _NUMPY_SCALARS
    return is_numpy and got.dtype.kind in "biuf"


def _same_kinds(dtype: Any) -> str:
    return "iu" if dtype.kind in "iu" else dtype.kind


def _names(message: str, naming: str | tuple[int, ...]) -> bool:
    if isinstance(naming, str):
        return naming in message
    numbers = iter(re.findall(r"(?<![\w.])-?\d+(?![\w.]*\d)", message))
    return all(str(position) in numbers for position in naming)


def _show_index(index: tuple[int, ...]) -> str:
    return str(index[0]) if len(index) == 1 else str(index)


def _show_whole(items: Any) -> str:
    if isinstance(items, list | np.ndarray) and np.ndim(items):
        return "[" + ", ".join(_show_whole(item) for item in items) + "]"
    return show_number(items)


def _show_answer(got: Any) -> str:
    if not _is_plain(got):
        return f"an object of type {type(got).__name__}"
    try:
        return show_given(got)
    except ValueError:
        return f"a {type(got).__name__}"
