"""What the judge lends: stand-ins here, whose methods run there.

For each call that lends something the judge opens a connection of its own, because the shell channel is busy until
that call ends; then the connection is closed, and with it the loan. Each message is its length and a value. Nothing
here is trusted: the judge reads whatever comes, and answers only what it has lent.
"""

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

from . import values

LENGTH = struct.Struct("<I")
OVER = "the loan is over: it ends with the call that it was given to"
KNOWN_PACKAGE = "labkit"
ERRORS = {error.__name__: error for error in (AttributeError, IndexError, KeyError, TypeError, ValueError)}

Ask = Callable[[bytes], bytes]


class StandIn:
    """Stands for an object of the judge's: its data is here, its methods run there on copies of the arguments."""

    def __init__(self, terms: dict[str, Any], ask: Ask, find_type: values.FindType) -> None:
        self._terms, self._ask, self._find_type = terms, ask, find_type
        vars(self).update(terms["attributes"])
        vars(self).update({name: self._method(name) for name in terms["methods"]})

    def __getattr__(self, name: str) -> Any:
        known = sorted([*self._terms["methods"], *self._terms["attributes"]]) if "_terms" in vars(self) else []
        raise AttributeError(f"{type(self).__name__}: expected one of {', '.join(known)}, got {name}")

    def _method(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._call(name, args, kwargs)

        call.__name__ = call.__qualname__ = name
        return call

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        asked = {"loan": self._terms["number"], "name": name, "args": list(args), "kwargs": kwargs}
        place, most = f"{type(self).__name__}.{name}", self._terms["max_bytes"]
        try:
            message = values.encode(asked, known_package=KNOWN_PACKAGE)
        except values.BadValue as error:
            raise TypeError(f"{place}: expected numbers, texts, arrays or lists of these, got {error}") from None
        if len(message) > most:
            raise ValueError(f"{place}: expected arguments of at most {most} bytes, got {len(message)}")
        reply = values.decode(self._ask(message), find_type=self._find_type)
        if "error" in reply:
            raise ERRORS.get(reply["error"], RuntimeError)(reply["text"])
        return reply["value"]


def stand_in(terms: dict[str, Any], ask: Ask, find_type: values.FindType) -> StandIn:
    """Return a stand-in whose class is called like that of the object."""
    named: type[StandIn] = type(terms["kind"], (StandIn,), {})
    return named(terms, ask, find_type)


class Line:
    """The way to the judge: one connection at a time, made from the listening socket that the kernel was given."""

    def __init__(self, listener: socket.socket | None) -> None:
        self._listener, self._process, self._lock = listener, os.getpid(), threading.Lock()
        self._connection: socket.socket | None = None
        if listener is not None:
            listener.setblocking(False)

    @contextlib.contextmanager
    def opened(self) -> Iterator[bool]:
        """Take the newest connection, if there is one, and close it at the end."""
        connection = None
        with contextlib.suppress(OSError):
            while self._listener is not None:  # older ones belong to calls that were interrupted before they began
                waiting = self._listener.accept()[0]
                if connection is not None:
                    connection.close()
                connection = waiting
        self._connection = connection
        try:
            yield connection is not None
        finally:
            self._hang_up()

    def ask(self, message: bytes) -> bytes:
        """Send a message and return the reply; one thread at a time, and only in the process that was called."""
        if os.getpid() != self._process:
            raise RuntimeError("a lent object: expected calls from the process that it was given to, got a fork of it")
        with self._lock:
            connection = self._connection
            if connection is None:
                raise RuntimeError(OVER)
            try:
                connection.sendall(LENGTH.pack(len(message)) + message)
                return _receive(connection, *LENGTH.unpack(_receive(connection, LENGTH.size)))
            except OSError:
                raise RuntimeError(OVER) from None
            except BaseException:
                self._hang_up()  # cut in the middle: the next reply that came would be this one's
                raise

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # wakes a thread that still waits for a reply
            connection.close()


def _receive(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = connection.recv(min(size - len(found), 1 << 20))
        if not part:
            raise ConnectionError
        found += part
    return bytes(found)
