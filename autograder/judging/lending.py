"""What a check lends to a student's function: `cases.lend(network, methods=("embed",), attributes=("window",))`.

Inside is a stand-in (`autograder.inside.lent`). Its calls come on a connection that is opened for one call of the
student's function and closed with it; the judge runs the method of its own object on decoded arguments and sends the
value back as data. Whatever comes is untrusted: it is measured before it is kept, one message is held at a time, the
next is read only when the reply has gone, and names are compared with what was declared. Time in a method is time of
the student's call. Nothing stops a method that is running, so a lent object must refuse arguments that would cost much.

A round trip takes about 0.3 ms for small arrays and 0.7 ms for some 50 KB: medians of 1,000 calls of a toy network from
a sandbox, measured on a busy machine of two cores.
"""

import contextlib
import enum
import socket
import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import zmq

from autograder.checks import Loan
from autograder.errors import CourseError, SandboxError
from autograder.inside import values
from autograder.inside.lent import KNOWN_PACKAGE, LENGTH, OVER
from autograder.sandbox.provisioner import LENT

MAX_TOTAL_BYTES = 256 << 20
MAX_TEXT = 500
READ_BYTES = 1 << 16
TOLD = (ValueError, TypeError, LookupError)  # what an object may raise to tell the student something


class Refused(Exception):  # noqa: N818 - the answer to a call, not an error of ours
    """A call that is not made: the name of the error that the student sees, and its text."""

    def __init__(self, error: str, text: str) -> None:
        super().__init__(text)
        self.error = error


class Lender:
    """Answers the calls of what one call of a student's function was lent, as bytes."""

    def __init__(self) -> None:
        self.loans: dict[int, Loan] = {}
        self._n_calls: Counter[int] = Counter()
        self._n_bytes = 0

    @property
    def most_bytes(self) -> int:
        """The longest message that any loan allows."""
        return max((loan.max_bytes for loan in self.loans.values()), default=0)

    def open(self, loans: Iterable[Loan]) -> None:
        """Answer calls of these too: an object that an earlier call left inside may hold their stand-ins."""
        self.loans |= {loan.number: loan for loan in loans}

    def terms_of(self, thing: Any) -> dict[str, Any] | None:
        """Return what the stand-in of a loan must know and answer its calls; None for anything else.

        Raises
        ------
        CourseError
            If an attribute that is lent is no data.
        """
        if not isinstance(thing, Loan):
            return None
        attributes = {name: getattr(thing.thing, name) for name in thing.attributes}
        for name, value in attributes.items():
            try:
                values.encode(value, known_package=KNOWN_PACKAGE)
            except values.BadValue as error:
                raise CourseError(f"lend: expected attributes that are data, got {thing}.{name}: {error}") from None
        self.open([thing])
        methods = list(thing.methods)
        plain = {"number": thing.number, "kind": str(thing), "max_bytes": thing.max_bytes}
        return {**plain, "methods": methods, "attributes": attributes}

    def answer(self, message: bytes) -> bytes:
        """Return the reply to one message, whatever it holds."""
        try:
            reply = self._answer(message)
            self._count_bytes(len(message) + len(reply))
        except Refused as refused:
            reply = values.encode({"error": refused.error, "text": str(refused)[:MAX_TEXT]})
        return reply

    def suspect(self, text: str) -> None:
        """Note something for a person to look at; the text is ours alone."""
        for loan in self.loans.values():
            loan.suspicions.add(text)

    def _answer(self, message: bytes) -> bytes:
        loan, name, args, kwargs = self._read(message)
        place = f"{loan}.{name}"
        self._n_calls[loan.number] += 1
        if self._n_calls[loan.number] > loan.max_calls:
            raise Refused("RuntimeError", f"{loan}: expected at most {loan.max_calls} calls, got more")
        if len(message) > loan.max_bytes or _longest_axis([args, kwargs]) > loan.max_bytes:
            raise Refused("ValueError", f"{place}: expected arguments of at most {loan.max_bytes} bytes, got more")
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = getattr(loan.thing, name)(*args, **kwargs)
            return values.encode({"value": value}, loan.max_bytes, known_package=KNOWN_PACKAGE)
        except TOLD as error:
            kinds = {kind.__name__ for kind in type(error).__mro__} & {"ValueError", "TypeError", "IndexError"}
            raise Refused(kinds.pop() if kinds else "KeyError", str(error)) from None
        except Exception as error:  # odd arguments are the student's, an object that cannot take them perhaps ours
            self.suspect(f"{place} failed ({type(error).__name__}); look at what it was given")
            given = ", ".join(map(_described, [*args, *kwargs.values()])) or "nothing"
            raise Refused("TypeError", f"{place}: expected arguments that it can use, got {given}") from None

    def _read(self, message: bytes) -> tuple[Loan, str, list[Any], dict[str, Any]]:
        """Return a call that may be made: of what is lent, by a name that was declared."""
        try:
            asked = values.decode(message, find_type=find_record)
            number, name, args, kwargs = asked["loan"], asked["name"], asked["args"], asked["kwargs"]
            if (type(number), type(name), type(args), type(kwargs)) != (int, str, list, dict):
                raise values.BadValue("not a call")
            if not all(type(key) is str for key in kwargs):
                raise values.BadValue("a keyword that is no text")
        except (values.BadValue, LookupError, TypeError) as error:
            self.suspect("a call of a lent object could not be read")
            text = str(error) if isinstance(error, values.BadValue) else "something else"
            raise Refused("TypeError", f"lent object: expected a call with data as arguments, got {text}") from None
        loan = self.loans.get(number)
        if loan is None:
            raise Refused("RuntimeError", OVER)
        if name not in loan.methods:
            self.suspect(f"{loan}: a method was called that is not lent")
            raise Refused("AttributeError", f"{loan}: expected one of {', '.join(loan.methods)}, got another name")
        return loan, name, args, kwargs

    def _count_bytes(self, number: int) -> None:
        self._n_bytes += number
        if self._n_bytes > MAX_TOTAL_BYTES:
            raise Refused("RuntimeError", f"lent object: expected at most {MAX_TOTAL_BYTES} bytes in all, got more")


class Connection:
    """The judge's end of the connection on which calls of lent objects come; it never waits.

    `socket` is None once the other side, or a message that is too long, has ended it.
    """

    def __init__(self, path: Path, lender: Lender) -> None:
        self._lender, self._received, self._to_send = lender, bytearray(), b""
        self.socket: socket.socket | None = socket.socket(socket.AF_UNIX)
        self.socket.setblocking(False)
        try:
            self.socket.connect(str(path))
        except (BlockingIOError, ConnectionRefusedError):  # the kernel closed the other end, or took no call before
            self._lender.suspect("the kernel takes no connection for lent objects")
            self.close()
        except OSError as error:
            self.close()
            raise SandboxError(f"lent object: expected a connection to the kernel, got {error}") from None

    def close(self) -> None:
        """End the loans of this call."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def register(self, poller: zmq.Poller) -> None:
        """Let a poller wait for what is to be done next."""
        if self.socket is not None:
            poller.register(self.socket.fileno(), zmq.POLLOUT if self._to_send else zmq.POLLIN)

    def attend(self, ready: dict[Any, int]) -> None:
        """Read or write what is possible, and answer at most one call."""
        if self.socket is None or self.socket.fileno() not in ready:
            return
        try:
            if self._to_send:
                self._to_send = self._to_send[self.socket.send(self._to_send) :]
            else:
                self._receive(self.socket.recv(READ_BYTES))
            if not self._to_send:
                self._answer()
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def _receive(self, part: bytes) -> None:
        if not part:
            raise ConnectionError
        self._received += part

    def _answer(self) -> None:
        """Answer the first whole message of what was received."""
        if len(self._received) < LENGTH.size:
            return
        (size,) = LENGTH.unpack_from(self._received)
        if size > self._lender.most_bytes:
            self._lender.suspect("a call of a lent object was longer than it may be")
            raise ConnectionError
        if len(self._received) >= LENGTH.size + size:
            reply = self._lender.answer(bytes(self._received[LENGTH.size : LENGTH.size + size]))
            del self._received[: LENGTH.size + size]
            self._to_send = LENGTH.pack(len(reply)) + reply


def connected(folder: Path, lender: Lender) -> contextlib.AbstractContextManager[Connection | None]:
    """Return a context with a connection to the kernel, or with None where nothing is lent."""
    if not lender.loans:
        return contextlib.nullcontext()
    return contextlib.closing(Connection(folder / LENT, lender))


def find_record(module: str, name: str) -> Any:
    """Return a named tuple or an enumeration of labkit that a check has imported; nothing is imported for a student."""
    found = getattr(sys.modules.get(module), name, None) if module.split(".")[0] == KNOWN_PACKAGE else None
    if isinstance(found, type) and (issubclass(found, enum.Enum) or _is_named_tuple(found)):
        return found
    raise values.BadValue("a type that no check uses")


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _longest_axis(value: Any) -> int:
    """Return the longest axis of any array: one without elements may claim any length."""
    if isinstance(value, np.ndarray):
        return max(value.shape, default=0)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return max(map(_longest_axis, parts), default=0)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array of {value.dtype} with shape {value.shape}"
    return type(value).__name__
