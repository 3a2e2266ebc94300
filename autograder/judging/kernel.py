"""A kernel behind a wall: run cells, bind functions, call them, and tell how it failed.

Calls are messages on the shell channel. Nothing in a reply is trusted but its bytes: to forge
one is the same as to return another value.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import zmq
from jupyter_client import BlockingKernelClient, KernelManager
from labkit.expect import Raised

from autograder.checks import Loan
from autograder.errors import AutograderError, CourseError, SandboxError
from autograder.inside import values
from autograder.judging.lending import Connection, Lender, connected
from autograder.judging.messages import Outputs, plain, receive
from autograder.limits import Limits, MiB
from autograder.sandbox import kernel_spec

START_SECONDS, GRACE_SECONDS, DRAIN_SECONDS = 60, 2, 1
REQUEST, REPLY = "judge_request", "judge_reply"
PACKAGE_OF_RECORDS = "labkit"


class NoValue(Exception):  # noqa: N818 - what the student's code did, not an error of ours
    """A call ended without a value that can be compared; the text is ours alone."""


class NotDefined(NoValue):
    """The function was not there when its check was bound."""


class CallEnded(BaseException):
    """A call or cell did not come back; `status` is the word for the outcome.

    Not an `Exception`: no check may catch it by accident.
    """

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


class TimedOut(CallEnded):
    """The code was interrupted; the kernel lives."""

    def __init__(self, text: str) -> None:
        super().__init__("timed_out", text)


class KernelLost(CallEnded):
    """The kernel died or had to be ended."""


class _Manager(KernelManager):  # type: ignore[misc]
    """A kernel manager that knows one kernelspec: ours, whatever is installed."""

    def __init__(self, prefix: Path, limits: Limits, sandbox: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._kernel_spec = kernel_spec(prefix, limits, sandbox)


class Kernel:
    """One kernel in a sandbox of its own.

    Parameters
    ----------
    listen: whether outputs are read at all. `close_outputs` ends it for good.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        limits: Limits,
        prefix: Path,
        sandbox: str = "bubblewrap",
        listen: bool = True,
    ) -> None:
        self.limits, self.listening = limits, listen
        self.client: Any = None
        self._pidfd = -1
        context = zmq.Context()
        context.setsockopt(zmq.MAXMSGSIZE, limits.reply_bytes + MiB)
        context.setsockopt(zmq.RCVHWM, 4)
        context.setsockopt(zmq.LINGER, 0)
        self._manager = _Manager(prefix, limits, sandbox, context=context)
        try:
            self._start(files)
        except BaseException as error:
            words = self._room.last_words() if self._room else ""
            self.end()
            if isinstance(error, AutograderError) or not isinstance(error, Exception | CallEnded):
                raise
            raise SandboxError(f"kernel: expected it to start, got {error or type(error).__name__} {words}") from error

    def _start(self, files: Mapping[str, bytes]) -> None:
        self._manager.start_kernel(submission=dict(files))
        self.client = BlockingKernelClient(context=self._manager.context, session=self._manager.session)
        self.client.load_connection_info(self._manager.get_connection_info())
        self.client.start_channels(shell=True, iopub=self.listening, stdin=False, hb=False, control=True)
        self._pidfd = os.pidfd_open(self._room.process.pid)
        self._wait(self.client.kernel_info(), START_SECONDS, None)

    @property
    def _room(self) -> Any:
        return getattr(self._manager.provisioner, "room", None)

    def end(self) -> None:
        """Kill the sandbox and remove every trace of it."""
        if self.client is not None:
            self.client.stop_channels()
        if self._manager.has_kernel:
            self._manager.shutdown_kernel(now=True)
        if self._room:
            self._room.remove()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        self._manager.context.destroy(linger=0)

    def close_outputs(self) -> None:
        """Stop listening: from here on no output can leave the kernel."""
        if self.listening:
            self.client.iopub_channel.stop()
            self.listening = False

    def run(self, source: str, seconds: float) -> tuple[str, list[dict[str, Any]]]:
        """Run one cell; return "ran", "raised", "out_of_memory" or "timed_out", and its outputs.

        Raises
        ------
        KernelLost
            If the cell took the kernel with it.
        """
        outputs = Outputs(self.limits.output_bytes) if self.listening else None
        asked = self.client.execute(source, allow_stdin=False, stop_on_error=False)
        try:
            content = self._wait(asked, seconds, outputs)["content"]
        except TimedOut as late:
            if outputs is not None:
                outputs.add_note(str(late))
            return "timed_out", outputs.kept if outputs else []
        if outputs is not None:
            self._drain(asked, outputs)
        raised = "out_of_memory" if content.get("ename") == "MemoryError" else "raised"
        return "ran" if content.get("status") == "ok" else raised, outputs.kept if outputs else []

    def bind(self, check: str, names: tuple[str, ...]) -> None:
        """Remember the functions that a check will call, as they are now."""
        self._ask({"op": "bind", "check": check, "names": list(names)}, self.limits.call_seconds)

    def call(self, seconds: float, **request: Any) -> Any:
        """Send one request of `inside.port` and return the reply's value.

        Raises
        ------
        labkit.expect.Raised
            If the student's code raised.
        NotDefined, NoValue
            If there is no such function, or what it returned is no value.
        TimedOut, KernelLost
            If the call did not come back.
        """
        return self._value_of(self._ask(request, seconds), request)

    def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and return the reply as far as it can be read at all."""
        lender = Lender()
        body = values.encode(
            dict(request) | {"max_bytes": self.limits.reply_bytes},
            keep=lambda thing: _number_of(thing, lender),
            known_package=PACKAGE_OF_RECORDS,
            terms_of=lender.terms_of,
        )
        message = self.client.session.msg(REQUEST, content={})
        with connected(self._room.folder, lender) as connection:
            self.client.session.send(self.client.shell_channel.socket, message, buffers=[body])
            answer = self._wait(message["header"]["msg_id"], seconds, None, connection)
        loans = tuple(lender.loans.values())
        try:
            reply = values.decode(
                bytes(answer["buffers"][0]), make_ref=lambda number, kind: self._handle(number, kind, loans)
            )
        except IndexError:
            raise NoValue("the kernel gave no readable answer") from None
        except values.BadValue as error:
            raise NoValue(f"what came back is no value: {error}") from None
        if not isinstance(reply, dict):
            raise NoValue("the kernel gave no readable answer")
        return reply

    def _handle(self, number: int, kind: str, loans: tuple[Loan, ...]) -> "Handle":
        """Return a handle whose class is called like the student's, for messages of checks that reveal."""
        named: type[Handle] = type(plain(kind, 80), (Handle,), {})
        return named(self, number, kind, loans)

    def _value_of(self, reply: dict[str, Any], request: Mapping[str, Any]) -> Any:
        if "missing" in reply:
            raise NotDefined(f"{request.get('name')} is not defined")
        if "kinds" in reply:
            kinds = [plain(kind, 80) for kind in reply["kinds"]] if isinstance(reply["kinds"], list) else []
            raise Raised(tuple(kinds) or ("Exception",), str(reply.get("text", ""))[:500])
        if "value" not in reply:
            raise NoValue("the kernel gave no readable answer")
        return (reply["value"], reply.get("args")) if request.get("with_args") else reply["value"]

    def _wait(
        self, message_id: str, seconds: float, outputs: Outputs | None, connection: Connection | None = None
    ) -> dict[str, Any]:
        """Return the reply to a message, or say how it failed to come; answer calls of what is lent meanwhile."""
        deadline, interrupted = time.monotonic() + seconds, False
        while True:
            left = deadline - time.monotonic()
            if left <= 0 and interrupted:
                self._room.kill()
                raise KernelLost("timed_out", f"no answer within {seconds:g} s, and it could not be interrupted")
            if left <= 0:
                self.client.control_channel.send(self.client.session.msg("interrupt_request", content={}))
                deadline, interrupted, connection = time.monotonic() + GRACE_SECONDS, True, None
                continue
            ready = dict(self._poller(outputs, connection).poll(left * 1000))
            message = receive(self.client.shell_channel) if self.client.shell_channel.socket in ready else None
            if message and message["parent_header"].get("msg_id") == message_id:
                if interrupted:
                    raise TimedOut(f"no answer within {seconds:g} s")
                return message
            if self._pidfd in ready and self.client.shell_channel.socket not in ready:
                raise self._loss()
            if outputs is not None and self.client.iopub_channel.socket in ready:
                outputs.take(receive(self.client.iopub_channel), message_id)
            if connection is not None:
                connection.attend(ready)

    def _poller(self, outputs: Outputs | None, connection: Connection | None) -> zmq.Poller:
        poller = zmq.Poller()
        poller.register(self.client.shell_channel.socket, zmq.POLLIN)
        poller.register(self._pidfd, zmq.POLLIN)
        if outputs is not None:
            poller.register(self.client.iopub_channel.socket, zmq.POLLIN)
        if connection is not None:
            connection.register(poller)
        return poller

    def _loss(self) -> KernelLost:
        why = self._room.why_it_ended()
        if why == "out_of_memory":
            return KernelLost(why, f"more than the {self.limits.memory_bytes // MiB} MiB of memory were used")
        return KernelLost("crashed", f"the kernel was ended: {why}" if why else "the kernel died")

    def _drain(self, message_id: str, outputs: Outputs) -> None:
        """Take the outputs that come in the moment after the reply."""
        deadline = time.monotonic() + DRAIN_SECONDS
        socket = self.client.iopub_channel.socket
        while not outputs.idle and time.monotonic() < deadline and socket.poll(200):
            outputs.take(receive(self.client.iopub_channel), message_id)


def _number_of(argument: Any, lender: Lender) -> int:
    if isinstance(argument, Handle):
        lender.open(argument._loans)
        return argument.number
    raise CourseError(
        f"student call: expected data, a value that a call returned, or cases.lend(…), got {type(argument).__name__}"
    )


class Handle:
    """An object that stays in the kernel: methods are calls, `get` reads an attribute."""

    def __init__(self, kernel: Kernel, number: int, kind: str, loans: tuple[Loan, ...] = ()) -> None:
        self._kernel, self.number, self.kind, self._loans = kernel, number, kind, loans

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def _method(*args: Any, **kwargs: Any) -> Any:
            request = {"op": "method", "object": self, "name": name, "args": list(args), "kwargs": kwargs}
            return self._kernel.call(self._kernel.limits.call_seconds, **request, with_args=False)

        return _method

    def get(self, name: str) -> Any:
        """Return an attribute of the object as a value."""
        return self._kernel.call(self._kernel.limits.call_seconds, op="attribute", object=self, name=name)
