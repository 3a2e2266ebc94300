"""The judge's end inside the kernel: take one request, run it, give the value back as bytes.

Nothing here is secret and nothing here is trusted: a student who replaces it changes only
what his own functions seem to return. Requests are messages of a type of their own on the shell
channel, so they do not pass through IPython's cell machinery, and a broken one loses no answer.
"""

import builtins
import importlib
import itertools
import socket
import warnings
from typing import Any

import numpy as np

from . import lent, values

MESSAGE, REPLY = "judge_request", "judge_reply"
MISSING = object()
LARGE_BYTES = 1 << 20


class Port:
    """The functions that check cells bound, and the objects that stay inside."""

    def __init__(self, namespace: dict[str, Any], listener: socket.socket | None = None) -> None:
        self.namespace, self.line = namespace, lent.Line(listener)
        self.bound: dict[tuple[str, str], Any] = {}
        self.meanings: dict[str, dict[str, Any]] = {}
        self.kept: dict[int, Any] = {}
        self.numbers = itertools.count()

    def answer(self, request: bytes) -> bytes:
        """Run one request and return the reply as bytes, whatever the student's code does."""
        try:
            with self.line.opened() as has_lent:
                if has_lent:  # asked once only: what is lent counts its calls
                    return self._answer_quietly(request)
                try:
                    return self._answer(request)
                except (FloatingPointError, Warning):  # a cell made errors of warnings, in the whole kernel
                    return self._answer_quietly(request)
        except BaseException as error:  # SystemExit and KeyboardInterrupt are answers too
            return values.encode(description_of(error))

    def _answer_quietly(self, request: bytes) -> bytes:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._answer(request)

    def _answer(self, request: bytes) -> bytes:
        asked = values.decode(request, lambda number, _: self.kept[number], find_type, self._stand_in)
        return values.encode(getattr(self, "_" + asked["op"])(asked), asked["max_bytes"], self._keep)

    def _bind(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Remember the functions that a check will call, and what all names mean at this place."""
        for name in asked["names"]:
            self.bound[asked["check"], name] = self.namespace.get(name, MISSING)
        self.meanings[asked["check"]] = {name: value for name, value in self.namespace.items() if not _is_large(value)}
        return {"value": None}

    def _call(self, asked: dict[str, Any]) -> dict[str, Any]:
        target = self.bound.get((asked["check"], asked["name"]), MISSING)
        if target is MISSING:
            return {"missing": asked["name"]}
        self._restore(asked["check"])
        return self._run(target, asked)

    def _text(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Give a constant back as it was where the check stands; what is no text stays behind."""
        value = self.bound.get((asked["check"], asked["name"]), MISSING)
        return {"missing": asked["name"]} if value is MISSING else {"value": value}

    def _restore(self, check: str) -> None:
        """Give names the meanings that they had at the place of a check.

        A later cell may have changed or deleted what the function calls, or named a thing of its own `max`.
        """
        meanings = self.meanings[check]
        for name in vars(builtins).keys() - meanings.keys():
            self.namespace.pop(name, None)
        self.namespace.update(meanings)

    def _method(self, asked: dict[str, Any]) -> dict[str, Any]:
        return self._run(getattr(asked["object"], asked["name"]), asked)

    def _attribute(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"value": getattr(asked["object"], asked["name"])}

    def _run(self, target: Any, asked: dict[str, Any]) -> dict[str, Any]:
        value = target(*asked["args"], **asked["kwargs"])
        return {"value": value, "args": asked["args"]} if asked["with_args"] else {"value": value}

    def _stand_in(self, terms: dict[str, Any]) -> lent.StandIn:
        return lent.stand_in(terms, self.line.ask, find_type)

    def _keep(self, thing: Any) -> int:
        number = next(self.numbers)
        self.kept[number] = thing
        return number


def _is_large(value: Any) -> bool:
    """Say whether a value should not outlive its name: the sandbox's memory is limited."""
    is_array = issubclass(type(value), np.ndarray)  # isinstance would ask the value itself
    return is_array and np.ndarray.nbytes.__get__(value) > LARGE_BYTES


def find_type(module: str, name: str) -> Any:
    """Return a class of the course's public package; nothing else is looked up."""
    if module.split(".")[0] != lent.KNOWN_PACKAGE:
        raise values.BadValue("a type of another package")
    return getattr(importlib.import_module(module), name)


def description_of(error: BaseException) -> dict[str, Any]:
    """Return what the judge is told of an exception: the names of its classes and its text."""
    try:
        text = str(error)[:500]
    except BaseException:
        text = ""
    return {"kinds": [kind.__name__[:80] for kind in type(error).__mro__[:16]], "text": text}


def attach(kernel: Any, listener: int) -> None:
    """Let an ipykernel answer the judge's requests; calls of what is lent go by the listening socket's connections."""
    port = Port(kernel.shell.user_ns, socket.socket(fileno=listener))
    send = kernel.session.send

    def _handle(stream: Any, identities: Any, message: dict[str, Any]) -> None:
        request = b"".join(bytes(part) for part in message["buffers"])
        send(stream, REPLY, {}, parent=message, ident=identities, buffers=[port.answer(request)])

    kernel.shell_handlers[MESSAGE] = _handle
