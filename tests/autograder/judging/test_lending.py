"""What is lent answers declared calls with data, whatever the other side sends; nothing else reaches it."""

import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st
from labkit.replay import LayerKind, ToyNetwork
from labkit.replay.network import Rows

from autograder.checks import Cases
from autograder.errors import CourseError, SandboxError
from autograder.inside import values
from autograder.inside.lent import LENGTH, OVER, Line, stand_in
from autograder.inside.port import find_type
from autograder.judging import lending
from autograder.judging.lending import Connection, Lender, find_record
from autograder.sandbox.provisioner import LENT

TOKENS = np.arange(5)


class Counting(ToyNetwork):
    """A network that counts the tokens fed to it."""

    def __init__(self) -> None:
        super().__init__(layers=2, window=4)
        self.n_embedded = 0
        self._secret = 1

    def embed(self, tokens):
        """Feed tokens."""
        hidden = super().embed(tokens)
        self.n_embedded += len(tokens)
        return hidden


class Odd:
    """What may go wrong in an object that is lent."""

    table = np.arange(3.0)

    def fail(self, error):
        """Raise one of many errors."""
        kinds = (ValueError, UnicodeError, TypeError, IndexError, KeyError, LookupError, AttributeError, OSError)
        known = {kind.__name__: kind for kind in (*kinds, MemoryError, RecursionError, NotImplementedError)}
        raise known[error]("as asked")

    def same(self, *args, **kwargs):
        """Return what was given."""
        return [*args, *kwargs.values()]

    def size(self, *arrays):
        """Return what a list does not have."""
        (x,) = arrays if len(arrays) == 1 else [arrays]
        return x.size

    def own_table(self):
        """Return the array itself."""
        return self.table

    def function(self):
        """Return what is no data."""
        return self.fail

    def zeros(self, n):
        """Return n bytes."""
        return bytes(n)


def lend(thing, **options):
    """Return a stand-in without a kernel, the lender that answers it, and the loan."""
    defaults = {
        Counting: {"methods": ("embed", "rows", "attend", "logits"), "attributes": ("window", "kinds")},
        Odd: {"methods": ("fail", "same", "size", "own_table", "function", "zeros"), "attributes": ("table",)},
    }
    loan, lender = Cases(b"").lend(thing, **(defaults[type(thing)] | options)), Lender()
    terms = values.decode(values.encode(lender.terms_of(loan), known_package="labkit"), find_type=find_type)
    return stand_in(terms, lender.answer, find_type), lender, loan


def call(loan, /, name="embed", args=(TOKENS,), **changed):
    """Return the bytes of a call."""
    return values.encode({"loan": loan.number, "name": name, "args": list(args), "kwargs": {}} | changed)


def message(text, *buffers):
    """Return bytes that no encoder of ours makes."""
    sizes = [len(text), *map(len, buffers)]
    head = struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
    return values.MAGIC + head + text.encode() + b"".join(buffers)


def test_declared_attributes_and_methods_are_all_that_a_stand_in_has():
    network = Counting()
    lent, _, _ = lend(network)
    assert lent.window == 4
    assert lent.kinds == (LayerKind.WINDOW,) * 2
    assert type(lent).__name__ == "Counting"
    np.testing.assert_array_equal(lent.embed(TOKENS), network.embedding[TOKENS])
    for name in ("n_embedded", "embedding", "_secret", "__wrapped__", "reads"):
        with pytest.raises(AttributeError, match=f"Counting: expected one of attend, .*, window, got {name}"):
            getattr(lent, name)


def test_records_keep_their_type_both_ways():
    network = Counting()
    lent, _, _ = lend(network)
    hidden = lent.embed(TOKENS)
    rows = lent.rows(0, hidden, TOKENS)
    assert type(rows) is Rows
    visible = np.ones((5, 5), bool)
    found = lent.attend(0, hidden, TOKENS, rows, is_visible=visible)
    expected = network.attend(0, hidden, TOKENS, network.rows(0, hidden, TOKENS), visible)
    np.testing.assert_array_equal(found, expected)
    odd, _, _ = lend(Odd())
    assert odd.same(LayerKind.GLOBAL, key=(1, [None])) == [LayerKind.GLOBAL, (1, [None])]


def test_what_the_stand_in_holds_is_a_copy():
    network = Counting()
    lent, _, _ = lend(network)
    lent.window = 99
    tokens = TOKENS.copy()
    lent.embed(tokens)[:] = 0
    assert network.window == 4
    assert np.abs(network.embedding).min() > 0
    odd, _, _ = lend(Odd())
    odd.table[:] = 7
    odd.own_table()[:] = 7
    assert Odd.table.tolist() == [0, 1, 2]


def test_only_declared_calls_change_what_the_object_records():
    network = Counting()
    lent, _, _ = lend(network)
    lent.n_embedded = 0
    lent.embed(TOKENS)
    lent.embed(TOKENS[:2])
    lent.n_embedded = 0
    assert network.n_embedded == 7


@pytest.mark.parametrize(
    ("methods", "attributes", "text"),
    [
        (("_secret",), (), "public names"),
        (("__init__",), (), "public names"),
        (("absent",), (), "public names"),
        ((), ("__class__",), "public names"),
        (("window",), (), "data in attributes"),
        ((), ("embed",), "data in attributes"),
    ],
)
def test_name_that_cannot_be_lent_is_our_fault(methods, attributes, text):
    with pytest.raises(CourseError, match=f"lend: expected .*{text}"):
        Cases(b"").lend(Counting(), methods=methods, attributes=attributes)


def test_attribute_that_is_no_data_is_our_fault():
    odd = Odd()
    odd.table = object.__new__(object)
    with pytest.raises(CourseError, match=r"expected attributes that are data, got Odd.table: object is not data"):
        lend(odd)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        *[("ValueError", ValueError), ("UnicodeError", ValueError), ("TypeError", TypeError)],
        *[("IndexError", IndexError), ("KeyError", KeyError), ("LookupError", KeyError)],
    ],
)
def test_error_that_an_object_raises_on_purpose_arrives_with_its_text(error, kind):
    odd, _, loan = lend(Odd())
    with pytest.raises(kind, match="as asked"):
        odd.fail(error)
    assert not loan.suspicions


@pytest.mark.parametrize("error", ["AttributeError", "OSError", "MemoryError", "RecursionError", "NotImplementedError"])
def test_any_other_error_arrives_as_one_about_the_arguments_and_a_person_is_told(error):
    odd, _, loan = lend(Odd())
    with pytest.raises(TypeError, match=r"Odd.fail: expected arguments that it can use, got str"):
        odd.fail(error)
    assert loan.suspicions == {f"Odd.fail failed ({error}); look at what it was given"}


def test_list_in_place_of_an_array_is_named():
    odd, _, _ = lend(Odd())
    assert odd.size(np.ones((2, 3))) == 6
    with pytest.raises(TypeError, match=r"Odd.size: expected arguments that it can use, got list"):
        odd.size([1.0, 2.0])
    with pytest.raises(TypeError, match=r"got array of float32 with shape \(2,\), array of"):
        odd.size(np.ones(2, "f4"), np.ones(2, "f4"))


def test_result_that_is_no_data_is_told_to_a_person():
    odd, _, loan = lend(Odd())
    with pytest.raises(TypeError, match=r"Odd.function: .* got nothing"):
        odd.function()
    assert loan.suspicions == {"Odd.function failed (BadValue); look at what it was given"}


@pytest.mark.parametrize("thing", [lambda: 1, object(), {1}, "itself"], ids=["function", "object", "set", "stand-in"])
def test_argument_that_is_no_data_is_refused_before_it_is_sent(thing):
    network = Counting()
    lent, _, loan = lend(network)
    with pytest.raises(TypeError, match=r"Counting.embed: expected numbers, texts, .* got \w+ is not data"):
        lent.embed([lent if thing == "itself" else thing])
    assert (network.n_embedded, loan.suspicions) == (0, set())


UNREADABLE = "TypeError: lent object: expected a call with data as arguments, got "
NO_RECORD, MALFORMED = UNREADABLE + "a type that no check uses", UNREADABLE + "malformed value"
REFUSED = {  # what is sent, as a function of the loan → how the reply starts, and whether a person is told
    "nothing": (lambda loan: b"", UNREADABLE, True),
    "no value": (lambda loan: b"{}", UNREADABLE, True),
    "a list": (lambda loan: values.encode([1]), UNREADABLE, True),
    "a part": (lambda loan: values.encode({"loan": loan.number}), UNREADABLE, True),
    "no name": (lambda loan: call(loan, name=None), UNREADABLE, True),
    "no arguments": (lambda loan: call(loan, args=(), kwargs=[]), UNREADABLE, True),
    "a keyword of bytes": (lambda loan: call(loan, kwargs={1: 2}), UNREADABLE, True),
    "true as loan": (lambda loan: call(loan, loan=True), UNREADABLE, True),
    "an object": (lambda loan: _with(loan, '{"ref": [0, "x"]}'), UNREADABLE, True),
    "a loan": (lambda loan: _with(loan, '{"lent": {"dict": []}}'), UNREADABLE, True),
    "a type": (lambda loan: _with(loan, '{"record": ["os", "stat_result", [[]]]}'), NO_RECORD, True),
    "a class": (lambda loan: _with(loan, '{"record": ["labkit.replay", "ToyNetwork", []]}'), NO_RECORD, True),
    "wrong fields": (lambda loan: _with(loan, '{"record": ["labkit.replay.network", "Rows", []]}'), MALFORMED, True),
    "objects": (lambda loan: _with(loan, '{"array": ["|O8", [1], 0]}', bytes(8)), UNREADABLE, True),
    "too few bytes": (lambda loan: _with(loan, '{"array": ["<f8", [9], 0]}', bytes(8)), UNREADABLE, True),
    "another method": (lambda loan: call(loan, name="reads"), "AttributeError: Counting: expected one of embed", True),
    "an attribute": (lambda loan: call(loan, name="window"), "AttributeError: Counting: expected one of", True),
    "its dictionary": (lambda loan: call(loan, name="__dict__"), "AttributeError: Counting: expected one of", True),
    "its start": (lambda loan: call(loan, name="__init__", args=()), "AttributeError: Counting: expected one of", True),
    "its counter": (lambda loan: call(loan, name="n_embedded"), "AttributeError: Counting: expected one of", True),
    "another loan": (lambda loan: call(loan, loan=loan.number + 1), "RuntimeError: " + OVER, False),
    "a loan before": (lambda loan: call(loan, loan=-1), "RuntimeError: " + OVER, False),
    "many bytes": (lambda loan: call(loan, args=(np.ones(1 << 17),)), "ValueError: Counting.embed: expected", False),
    "a long axis": (lambda loan: call(loan, args=([np.ones((1 << 39, 0), "u1")],)), "ValueError: Counting", False),
    "floats": (lambda loan: call(loan, args=(TOKENS / 2,)), "TypeError: tokens: expected integers", False),
    "beyond": (lambda loan: call(loan, args=(TOKENS + 64,)), "ValueError: tokens: expected", False),
    "too many arguments": (lambda loan: call(loan, args=(1, 2, 3)), "TypeError: Counting.embed() takes", False),
    "no argument": (lambda loan: call(loan, args=()), "TypeError: Counting.embed() missing", False),
    "a number": (
        lambda loan: call(loan, args=(5,)),
        "TypeError: Counting.embed: expected arguments that it can use, got int",
        True,
    ),
}


def _with(loan, node, *buffers):
    parts = [f'["loan", {loan.number}]', '["name", "embed"]', f'["args", [{node}]]', '["kwargs", {"dict": []}]']
    return message(f'{{"dict": [{", ".join(parts)}]}}', *buffers)


@pytest.mark.parametrize("what", REFUSED)
def test_call_that_may_not_be_made_is_refused(what):
    make, start, is_suspicious = REFUSED[what]
    network = Counting()
    _, lender, loan = lend(network)
    reply = values.decode(lender.answer(make(loan)))
    assert f"{reply['error']}: {reply['text']}".startswith(start), reply
    assert bool(loan.suspicions) == is_suspicious
    assert network.window == 4
    assert network.n_embedded == 0


def test_right_call_by_hand_is_answered():
    """What the refused ones are made of: `_with` and `call` are no reason for a refusal."""
    network = Counting()
    _, lender, loan = lend(network)
    hand_made = _with(loan, '{"array": ["<i8", [2], 0]}', np.arange(2).tobytes())
    for sent in (hand_made, call(loan)):
        assert "value" in values.decode(lender.answer(sent))
    assert network.n_embedded == 7


@settings(deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_are_answered_with_an_error(data, is_marked):
    network = Counting()
    _, lender, _ = lend(network)
    assert "error" in values.decode(lender.answer(values.MAGIC + data if is_marked else data))
    assert network.n_embedded == 0


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats() | st.text() | st.binary(),
    lambda part: st.lists(part, max_size=3) | st.tuples(part) | st.dictionaries(st.text(), part, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.sampled_from(["embed", "rows", "attend", "logits"]), st.lists(ANYTHING, max_size=5))
def test_any_arguments_are_answered(name, args):
    _, lender, loan = lend(Counting())
    values.decode(lender.answer(call(loan, name=name, args=args)), find_type=find_type)


def test_calls_are_limited():
    network = Counting()
    lent, _, _ = lend(network, max_calls=3)
    for _ in range(3):
        lent.embed(TOKENS)
    with pytest.raises(RuntimeError, match="Counting: expected at most 3 calls, got more"):
        lent.embed(TOKENS)
    assert network.n_embedded == 15


def test_bytes_of_a_call_and_of_a_result_are_limited():
    odd, _, _ = lend(Odd(), max_bytes=1000)
    assert odd.same(bytes(800)) == [bytes(800)]
    with pytest.raises(ValueError, match=r"Odd.same: expected arguments of at most 1000 bytes, got \d+"):
        odd.same(bytes(1000))
    assert odd.zeros(1000) == bytes(1000)
    with pytest.raises(TypeError, match=r"Odd.zeros: expected arguments that it can use, got int"):
        odd.zeros(1001)


def test_bytes_in_all_are_limited(monkeypatch):
    monkeypatch.setattr(lending, "MAX_TOTAL_BYTES", 3000)
    odd, _, _ = lend(Odd())
    odd.zeros(2000)
    with pytest.raises(RuntimeError, match="expected at most 3000 bytes in all"):
        odd.zeros(1000)
    with pytest.raises(RuntimeError, match="expected at most 3000 bytes in all"):
        odd.zeros(0)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *[("os", "stat_result"), ("labkit.replay", "ToyNetwork"), ("labkit.replay", "np")],
        *[("labkit.replay", "absent"), ("labkit.never", "Rows"), ("labkit_replay", "Rows"), ("builtins", "tuple")],
    ],
)
def test_no_other_type_is_made_for_a_student(module, name):
    known = set(sys.modules)
    with pytest.raises(values.BadValue, match="a type that no check uses"):
        find_record(module, name)
    assert set(sys.modules) == known


def test_module_that_no_check_has_imported_stays_so(monkeypatch):
    assert find_record("labkit.replay.network", "Rows") is Rows
    monkeypatch.delitem(sys.modules, "labkit.replay.network")
    with pytest.raises(values.BadValue, match="a type that no check uses"):
        find_record("labkit.replay.network", "Rows")


class Wire:
    """The judge's end in a thread of its own, as it is in a call; the other end is the test's."""

    def __init__(self, folder, thing, n_older=0, **options):
        _, self.lender, self.loan = lend(thing, **options)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / LENT))
        self.listener.listen(8)
        self.older = [Connection(folder / LENT, self.lender) for _ in range(n_older)]
        self.connection = Connection(folder / LENT, self.lender)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def _serve(self):
        while not self._is_over.is_set():
            poller = zmq.Poller()
            self.connection.register(poller)
            self.connection.attend(dict(poller.poll(20)))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()
        for end in (*self.older, self.connection, self.listener):
            end.close()


@pytest.fixture
def folder():
    """A folder whose name is short enough for a socket's."""
    with tempfile.TemporaryDirectory(prefix="at-", dir="/tmp") as made:
        yield Path(made)


def receive_whole(there):
    (size,) = LENGTH.unpack(there.recv(LENGTH.size, socket.MSG_WAITALL))
    return values.decode(there.recv(size, socket.MSG_WAITALL))


def framed(data):
    return LENGTH.pack(len(data)) + data


def test_messages_may_come_in_any_pieces(folder):
    network = Counting()
    with Wire(folder, network) as wire:
        there, _ = wire.listener.accept()
        with there:
            for piece in framed(call(wire.loan)):
                there.sendall(bytes([piece]))
            assert receive_whole(there)["value"].shape == (5, 16)
            there.sendall(2 * framed(call(wire.loan)) + framed(call(wire.loan))[:9])
            receive_whole(there), receive_whole(there)
    assert network.n_embedded == 15


def test_reply_that_is_not_read_holds_nothing_up_but_the_sender(folder):
    """One message at a time is held here, and what a socket holds: a flood waits on its own side."""
    with Wire(folder, Odd(), max_bytes=1 << 20) as wire:
        there, _ = wire.listener.accept()
        with there:
            there.settimeout(0.3)
            sent = 0
            with pytest.raises(TimeoutError):
                for _ in range(1000):
                    sent += there.send(framed(call(wire.loan, name="zeros", args=(1 << 20,))))
            assert len(wire.connection._received) <= lending.READ_BYTES
            assert len(wire.connection._to_send) <= (1 << 20) + 1000
            there.settimeout(None)
            assert len(receive_whole(there)["value"]) == 1 << 20


def test_message_that_is_too_long_ends_the_connection(folder):
    with Wire(folder, Counting()) as wire:
        there, _ = wire.listener.accept()
        with there:
            there.sendall(LENGTH.pack(2**32 - 1) + bytes(100))
            assert there.recv(1) == b""
    assert wire.loan.suspicions == {"a call of a lent object was longer than it may be"}


def test_other_end_that_is_closed_ends_the_connection(folder):
    with Wire(folder, Counting()) as wire:
        there, _ = wire.listener.accept()
        there.sendall(framed(call(wire.loan))[:20])
        there.close()
        deadline = time.monotonic() + 60
        while wire.connection.socket is not None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert wire.connection.socket is None


def test_kernel_that_takes_no_connection_is_told_to_a_person(folder):
    with Wire(folder, Counting()) as wire:
        kept = [Connection(folder / LENT, wire.lender) for _ in range(20)]
        assert [connection.socket is None for connection in kept[-5:]] == [True] * 5
        assert wire.loan.suspicions == {"the kernel takes no connection for lent objects"}
        for connection in kept:
            connection.close()
    assert Connection(folder / LENT, wire.lender).socket is None


def test_no_way_to_the_kernel_is_no_students_fault(folder):
    with pytest.raises(SandboxError, match="lent object: expected a connection"):
        Connection(folder / "absent", Lender())


def test_line_takes_the_newest_connection_and_closes_it(folder):
    network = Counting()
    with Wire(folder, network, n_older=2) as wire:
        line = Line(wire.listener)
        with pytest.raises(RuntimeError, match=OVER):
            line.ask(call(wire.loan))
        with line.opened() as is_open:
            assert is_open
            assert "value" in values.decode(line.ask(call(wire.loan)))
        with pytest.raises(RuntimeError, match=OVER):
            line.ask(call(wire.loan))
        with line.opened() as is_open:
            assert not is_open
        assert [connection.socket.recv(1) for connection in wire.older] == [b"", b""]
    assert network.n_embedded == 5


def test_exchange_that_is_interrupted_ends_the_line(folder):
    """Or the next call would get the reply of this one."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / LENT))
    listener.listen(8)
    line, judge = Line(listener), socket.socket(socket.AF_UNIX)
    judge.connect(str(folder / LENT))
    interrupt = threading.Timer(0.2, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT])
    with listener, judge, line.opened():
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            line.ask(b"first")
        with pytest.raises(RuntimeError, match=OVER):
            line.ask(b"second")
        assert judge.recv(100) == framed(b"first")
        assert judge.recv(100) == b""


def test_fork_of_the_kernel_is_refused(folder, monkeypatch):
    line = Line(None)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="expected calls from the process that it was given to"):
        line.ask(b"")
