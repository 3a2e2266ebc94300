"""Values as bytes: JSON for structure, raw buffers for arrays. Never pickle, never code.

The same module runs on both sides of the wall; only `decode` on the judge's side has to be
safe against a hostile `encode`. Sizes are checked before memory is taken, every buffer is
used once, and keys are of kinds that cannot be made to collide.
"""

import enum
import json
import math
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Keep = Callable[[Any], int]
MakeRef = Callable[[int, str], Any]
FindType = Callable[[str, str], Any]
TermsOf = Callable[[Any], dict[str, Any] | None]
MakeStandIn = Callable[[dict[str, Any]], Any]

MAGIC = b"AV01"
MAX_BYTES = 64 << 20
MAX_DEPTH = 32
MAX_NODES = 200_000
MAX_TEXT_BYTES = 4 << 20
MAX_KEY = 2**53
# Written out: the text of a dtype comes from the other side.
DTYPES = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"}


class BadValue(Exception):  # noqa: N818 - a finding about bytes
    """The bytes do not hold a value that the judge accepts, or the value cannot travel."""


def encode(
    value: Any,
    max_bytes: int | None = None,
    keep: Keep | None = None,
    known_package: str = "",
    terms_of: TermsOf | None = None,
) -> bytes:
    """Return the value as bytes.

    `keep(object)` returns a number for what is not data and stays behind. Named tuples and
    enumeration members of `known_package` keep their type; those of others become plain.
    `terms_of(object)` returns what a stand-in for a lent object must know, or None for any other.
    """
    encoder = _Encoder(max_bytes or MAX_BYTES, keep, known_package, terms_of)
    text = json.dumps(encoder.node(value, 0)).encode()
    if len(text) > MAX_TEXT_BYTES:
        raise BadValue(f"{len(text)} bytes of text and numbers are too many; arrays travel better")
    sizes = [len(text), *map(len, encoder.buffers)]
    return MAGIC + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes) + text + b"".join(encoder.buffers)


class _Encoder:
    """Turn one value into JSON nodes and a list of buffers."""

    def __init__(self, max_bytes: int, keep: Keep | None, known_package: str, terms_of: TermsOf | None) -> None:
        self.buffers: list[bytes] = []
        self.room, self.nodes = max_bytes, 0
        self.keep, self.known_package, self.terms_of = keep, known_package, terms_of

    def node(self, value: Any, depth: int) -> Any:
        """Return the JSON node of a value; its buffers are stored on the way."""
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise BadValue(f"nested deeper than {MAX_DEPTH} or more than {MAX_NODES} parts")
        if isinstance(value, enum.Enum):
            return self._enum(value)
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, bytes | bytearray):
            return {"bytes": self._store(bytes(value))}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, list | tuple | dict):
            return self._container(value, depth + 1)
        return self._other(value, depth + 1)

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return {"dict": [[self.node(part, depth) for part in pair] for pair in value.items()]}
        items = [self.node(item, depth) for item in value]
        if isinstance(value, list):
            return items
        if hasattr(type(value), "_fields") and self._is_known(type(value)):
            return {"record": [type(value).__module__, type(value).__qualname__, items]}
        return {"tuple": items}

    def _enum(self, value: enum.Enum) -> Any:
        if self._is_known(type(value)):
            return {"enum": [type(value).__module__, type(value).__qualname__, value.name]}
        return self._left_behind(value)

    def _array(self, value: Any) -> Any:
        copy = np.array(value, order="C")  # once: what comes after is of this copy alone
        if value.dtype.kind not in "biufc" or isinstance(value, np.ma.MaskedArray):
            return self._left_behind(value)
        copy = copy.astype(copy.dtype.newbyteorder("<"), copy=False)
        if copy.dtype.str not in DTYPES:
            return self._left_behind(value)
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return {kind: [copy.dtype.str, list(copy.shape), self._store(copy.tobytes())]}

    def _other(self, value: Any, depth: int) -> Any:
        terms = self.terms_of(value) if self.terms_of else None
        if terms is not None:
            return {"lent": self.node(terms, depth)}
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            plain = value.detach().cpu()
            narrow = plain.is_floating_point() and plain.dtype not in (torch.float16, torch.float32, torch.float64)
            return self._array((plain.float() if narrow else plain).numpy())  # every narrow format fits float32
        return self._left_behind(value)

    def _left_behind(self, value: Any) -> Any:
        if self.keep is None:
            raise BadValue(f"{type(value).__name__} is not data")
        return {"ref": [self.keep(value), type(value).__name__[:80]]}

    def _store(self, data: bytes) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise BadValue("the value is too large")
        self.buffers.append(data)
        return len(self.buffers) - 1

    def _is_known(self, kind: type) -> bool:
        return bool(self.known_package) and kind.__module__.split(".")[0] == self.known_package


def decode(
    data: bytes,
    make_ref: MakeRef | None = None,
    find_type: FindType | None = None,
    make_stand_in: MakeStandIn | None = None,
) -> Any:
    """Return the value that the bytes stand for.

    Raises
    ------
    BadValue
        For anything malformed, and for objects and types where the caller resolves none.
    """
    try:
        text, buffers = _split(data)
        return _Decoder(buffers, make_ref, find_type, make_stand_in).value(json.loads(text), 0)
    except BadValue:
        raise
    except Exception as error:  # any malformed input must end here, not in the judge
        raise BadValue(f"malformed value ({type(error).__name__})") from None


def _split(data: bytes) -> tuple[bytes, list[Any]]:
    (count,) = struct.unpack_from("<I", data, 4)
    if bytes(data[:4]) != MAGIC or not 0 < count <= MAX_NODES:
        raise BadValue("not a value")
    sizes = struct.unpack_from(f"<{count}Q", data, 8)
    start = 8 + 8 * count
    if start + sum(sizes) != len(data) or sizes[0] > MAX_TEXT_BYTES:
        raise BadValue("sizes do not add up, or too many parts")
    parts, view = [], memoryview(data)
    for size in sizes:
        parts.append(view[start : start + size])
        start += size
    text = bytes(parts[0])
    if (
        text.count(b"[") + text.count(b"{") + text.count(b",") > 4 * MAX_NODES
    ):  # parsed, `[[],[],` takes 30 times its size
        raise BadValue("too many parts")
    return text, parts[1:]


class _Decoder:
    """Turn JSON nodes and buffers back into one value."""

    def __init__(
        self,
        buffers: list[Any],
        make_ref: MakeRef | None,
        find_type: FindType | None,
        make_stand_in: MakeStandIn | None,
    ) -> None:
        self.buffers, self.nodes = buffers, 0
        self.make_ref, self.find_type, self.make_stand_in = make_ref, find_type, make_stand_in
        self.tags: dict[str, Callable[[Any, int], Any]] = {
            "array": self._array, "scalar": self._scalar, "tuple": self._tuple, "dict": self._dict,
            "bytes": self._bytes, "complex": self._complex, "ref": self._ref, "record": self._record,
            "enum": self._enum, "lent": self._lent,
        }  # fmt: skip

    def value(self, node: Any, depth: int) -> Any:
        """Return the value of a JSON node."""
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise BadValue("too many parts")
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if isinstance(node, list):
            return [self.value(item, depth + 1) for item in node]
        ((tag, body),) = node.items()
        return self.tags[tag](body, depth)

    def _array(self, body: Any, depth: int) -> Any:
        dtype, shape, index = body
        sane = len(shape) <= 16 and all(type(n) is int and 0 <= n < 1 << 40 for n in shape)
        if dtype not in DTYPES or not sane:
            raise BadValue("array type or shape not accepted")
        data = self._take(index)
        if math.prod(shape) * np.dtype(dtype).itemsize != len(data):
            raise BadValue("array size does not fit its shape")
        return np.frombuffer(data, dtype).reshape(shape).copy()

    def _take(self, index: int) -> Any:
        """Return a buffer, once: the same one in many places would multiply in memory."""
        data, self.buffers[index] = self.buffers[index], None
        return data

    def _scalar(self, body: Any, depth: int) -> Any:
        return self._array([body[0], [], body[2]], depth)[()]

    def _tuple(self, body: Any, depth: int) -> Any:
        return tuple(self.value(item, depth + 1) for item in body)

    def _dict(self, body: Any, depth: int) -> Any:
        found = {}
        for key_node, item_node in body:
            key = self.value(key_node, depth + 1)
            if not (key is None or isinstance(key, str) or (isinstance(key, int) and abs(key) < MAX_KEY)):
                raise BadValue("a dictionary key that is no text and no small integer")
            found[key] = self.value(item_node, depth + 1)
        return found

    def _bytes(self, body: Any, depth: int) -> Any:
        return bytes(self._take(body))

    def _complex(self, body: Any, depth: int) -> Any:
        return complex(float(body[0]), float(body[1]))

    def _ref(self, body: Any, depth: int) -> Any:
        number, type_name = body
        if self.make_ref is None or type(number) is not int or type(type_name) is not str:
            raise BadValue("an object that is not data")
        return self.make_ref(number, type_name[:80])

    def _lent(self, body: Any, depth: int) -> Any:
        if self.make_stand_in is None:
            raise BadValue("an object that is not data")
        return self.make_stand_in(self.value(body, depth + 1))

    def _record(self, body: Any, depth: int) -> Any:
        return self._type(body)(*self._tuple(body[2], depth))

    def _enum(self, body: Any, depth: int) -> Any:
        return self._type(body)[body[2]]

    def _type(self, body: Any) -> Any:
        if self.find_type is None:
            raise BadValue("a type that is not plain data")
        return self.find_type(body[0], body[1])
