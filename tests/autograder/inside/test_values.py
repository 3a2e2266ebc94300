"""Values cross the wall as bytes: what goes over comes back, and nothing else gets in."""

import enum
import json
import struct
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.inside import port, values

ARRAYS = {
    "empty": np.zeros(0, "f4"),
    "scalar array": np.array(3, "i2"),
    "matrix": np.arange(6, dtype="u1").reshape(2, 3),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "strided": np.arange(10)[::-2],
    "half": np.array([1.5, -0.0, np.inf], "f2"),
    "complex": np.array([1 + 2j]),
    "bool": np.array([True, False]),
    "big-endian": np.arange(3, dtype=">i4"),
}


def there_and_back(value, **options):
    return values.decode(values.encode(value, **options))


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_keep_dtype_shape_and_bits(name):
    found = there_and_back(ARRAYS[name])
    assert found.dtype == ARRAYS[name].dtype.newbyteorder("<")
    assert found.shape == ARRAYS[name].shape
    assert found.tobytes() == ARRAYS[name].astype(found.dtype).tobytes()
    assert found.flags.writeable


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda part: (
        st.lists(part, max_size=4)
        | st.tuples(part, part)
        | st.dictionaries(st.text() | st.integers(-(2**52), 2**52), part, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None)  # a busy machine is slow, not wrong
@given(PLAIN)
def test_plain_values_come_back_equal(value):
    assert there_and_back(value) == value


@pytest.mark.parametrize("value", [np.float32(2.5), np.int8(-3), np.bool_(True), np.complex64(1j)])
def test_scalars_keep_their_type(value):
    found = there_and_back(value)
    assert type(found) is type(value)
    assert found == value


def test_named_tuple_of_the_known_package_keeps_its_type_inwards_only():
    from labkit.formats import QuantisedE2M1

    sent = QuantisedE2M1(np.zeros(16, "u1"), np.ones(1, "f4"), 1.0)
    assert type(there_and_back(sent)) is tuple
    inwards = values.encode(sent, known_package="labkit")
    assert type(values.decode(inwards, find_type=port.find_type)) is QuantisedE2M1
    with pytest.raises(values.BadValue, match="not plain data"):
        values.decode(inwards)


def test_named_tuple_of_another_package_is_a_tuple():
    pair = namedtuple("Pair", "a b")
    assert there_and_back(pair(1, 2), known_package="labkit") == (1, 2)


def test_enumeration_member_of_the_known_package_keeps_its_type():
    from labkit.formats import ScaleRule

    for rule in ScaleRule:
        sent = values.encode(rule, known_package="labkit")
        assert values.decode(sent, find_type=port.find_type) is rule


def test_no_type_of_another_package_is_looked_up():
    with pytest.raises(values.BadValue, match="another package"):
        port.find_type("os", "system")


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, Colour.RED, np.array([None]), np.array(["a"]), np.ma.masked_array([1.0]), np.zeros(1, "M8[s]")],
    ids=["object", "set", "enumeration", "array of objects", "array of text", "masked array", "array of times"],
)
def test_what_is_no_data_stays_behind(value):
    with pytest.raises(values.BadValue, match="is not data"):
        values.encode(value)
    kept = []
    sent = values.encode(value, keep=lambda thing: kept.append(thing) or 7)
    assert values.decode(sent, make_ref=lambda number, kind: (number, kind)) == (7, type(value).__name__)
    assert kept[0] is value


def test_array_subclass_becomes_an_array():
    class Mine(np.ndarray):
        pass

    assert type(there_and_back(np.arange(3).view(Mine))) is np.ndarray


def test_too_large_a_value_is_refused_before_it_is_sent():
    with pytest.raises(values.BadValue, match="too large"):
        values.encode(np.zeros(1000), max_bytes=999)
    with pytest.raises(values.BadValue, match="more than"):
        values.encode([0] * (values.MAX_NODES + 1))
    with pytest.raises(values.BadValue, match="nested deeper"):
        values.encode(_nested(values.MAX_DEPTH + 2))


def _nested(depth):
    return [_nested(depth - 1)] if depth else []


def message(text, *buffers):
    data = text if isinstance(text, bytes) else json.dumps(text).encode()
    sizes = [len(data), *map(len, buffers)]
    return values.MAGIC + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes) + data + b"".join(buffers)


MALFORMED = {
    "nothing": b"",
    "another magic": b"ABCD" + message(1)[4:],
    "no text": values.MAGIC + struct.pack("<I", 0),
    "cut": message([1, 2])[:-1],
    "longer": message([1, 2]) + b"x",
    "count": values.MAGIC + struct.pack("<I", 2**32 - 1),
    "size": values.MAGIC + struct.pack("<IQ", 1, 2**63),
    "not JSON": message(b"{"),
    "two tags": message({"tuple": [], "bytes": 0}),
    "unknown tag": message({"__class__": []}),
    "object dtype": message({"array": ["|O", [1], 0]}, b"8" * 8),
    "structured dtype": message({"array": ["i4,i4", [1], 0]}, b"8" * 8),
    "shape and size": message({"array": ["<f4", [3], 0]}, b"8" * 8),
    "huge shape": message({"array": ["<f4", [2**39, 2**39], 0]}, b"8" * 8),
    "negative shape": message({"array": ["<f4", [-1], 0]}, b"8" * 8),
    "true as shape": message({"array": ["<f4", [True, 2], 0]}, b"8" * 8),
    "one buffer twice": message([{"bytes": 0}, {"bytes": 0}], b"8"),
    "no such buffer": message({"bytes": 5}),
    "list as key": message({"dict": [[[1], 2]]}),
    "float as key": message({"dict": [[0.5, 2]]}),
    "large key": message({"dict": [[2**61 - 1, 2]]}),
    "brackets": message(b"[" * (4 * values.MAX_NODES + 1)),
    "deep": message(b"[" * 500 + b"]" * 500),
    "reference": message({"ref": [1, "x"]}),
    "record": message({"record": ["labkit.formats", "ScaleRule", []]}),
    "complex of text": message({"complex": ["a", "b"]}),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_bytes_are_a_bad_value(name):
    with pytest.raises(values.BadValue):
        values.decode(MALFORMED[name])


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_a_bad_value_or_a_value(data):
    try:
        values.decode(values.MAGIC + data)
    except values.BadValue:
        return


def test_torch_tensors_become_arrays_where_torch_is_there():
    torch = pytest.importorskip("torch")
    for kind in (torch.bfloat16, torch.float8_e4m3fn, torch.float32):
        found = there_and_back(torch.tensor([1.5, -2.0]).to(kind))
        assert found.dtype == np.float32, kind
        assert found.tolist() == [1.5, -2.0], kind
    assert there_and_back(torch.tensor([1, 2], dtype=torch.uint8)).dtype == np.uint8
    assert there_and_back(torch.ones(2, requires_grad=True)).tolist() == [1.0, 1.0]
