"""Read what a kernel sends: bounded, well-formed, or nothing.

Whoever holds a kernel's sockets can send any bytes. Frames are counted and measured before
JSON is parsed, and only plain outputs of known shapes are kept.
"""

import contextlib
import re
from typing import Any

import zmq

MAX_PARTS = 500_000
MAX_FRAMES = 8
MAX_OUTPUTS = 500
MIME_TEXT_LIMIT = 128
Output = dict[str, Any]


def receive(channel: Any) -> dict[str, Any] | None:
    """Return the waiting message of a channel, or None for anything that is no proper one.

    Brackets are counted before JSON is parsed: parsed, `[[],[],…` takes thirty times its size.
    """
    try:
        frames = channel.socket.recv_multipart(zmq.DONTWAIT)
        _, parts = channel.session.feed_identities(frames)
        structure = sum(part.count(mark) for part in parts[:5] for mark in (b"[", b"{", b","))
        if len(parts) > MAX_FRAMES or structure > MAX_PARTS:
            return None
        message: dict[str, Any] = channel.session.deserialize(parts)
        well_formed = isinstance(message["parent_header"], dict) and isinstance(message["content"], dict)
        return message if well_formed and isinstance(message["msg_type"], str) else None
    except Exception:  # badly signed, not JSON, too deep: whatever a hostile kernel sends is not a message
        return None


class Outputs:
    """The outputs of one cell as nbformat's plain dictionaries, cut at a number of bytes."""

    def __init__(self, room: int) -> None:
        self.kept: list[Output] = []
        self.room, self.idle, self.cut = room, False, False

    def take(self, message: dict[str, Any] | None, message_id: str) -> None:
        """Keep the message if it is an output of that request and there is room."""
        if not message or message["parent_header"].get("msg_id") != message_id:
            return
        kind, content = message["msg_type"], message["content"]
        if kind == "status":
            self.idle = content.get("execution_state") == "idle"
        elif kind == "clear_output":
            self.kept.clear()
        elif not self.cut:
            output = as_output(kind, content)
            if output is not None:
                self._keep(output)

    def _keep(self, output: Output) -> None:
        size = _size(output)
        last = self.kept[-1] if self.kept else {}
        if size > self.room or len(self.kept) >= MAX_OUTPUTS:
            self.cut = True
            if output["output_type"] == "stream":
                self.kept.append({**output, "text": output["text"][: max(self.room, 0)]})
            self.add_note("the rest of this cell's output was cut")
        elif output["output_type"] == "stream" and last.get("name") == output["name"]:
            last["text"] += output["text"]
        else:
            self.kept.append(output)
        self.room -= size

    def add_note(self, text: str) -> None:
        """Add a line of the judge's own to the outputs."""
        self.kept.append({"output_type": "stream", "name": "stderr", "text": f"[{text}]\n"})


def as_output(kind: str, content: dict[str, Any]) -> Output | None:
    """Return a kernel's message as an nbformat output of plain data, or None if it is none."""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        if kind == "stream":
            name = "stderr" if content["name"] == "stderr" else "stdout"
            return {"output_type": "stream", "name": name, "text": _text(content["text"])}
        if kind in ("display_data", "execute_result"):
            output: Output = {"output_type": kind, "metadata": {}, "data": _bundle(content["data"])}
            return output | ({"execution_count": None} if kind == "execute_result" else {})
        if kind == "error":
            lines = [_text(line) for line in content["traceback"]]
            ename, evalue = _text(content["ename"]), _text(content["evalue"])
            return {"output_type": "error", "ename": ename, "evalue": evalue, "traceback": lines}
    return None


def _bundle(data: dict[str, Any]) -> dict[str, Any]:
    return {_text(mime)[:MIME_TEXT_LIMIT]: _text(value) for mime, value in data.items() if isinstance(value, str)}


def _text(value: Any) -> str:
    """Return text that can be written as UTF-8; lone surrogates cannot."""
    if not isinstance(value, str):
        raise TypeError
    return value.encode("utf-8", "replace").decode("utf-8")


def _size(output: Output) -> int:
    texts = [*output.get("data", {}).values(), *output.get("traceback", ()), output.get("text", "")]
    return sum(map(len, texts)) + len(output.get("evalue", "")) + 1


def plain(text: str, limit: int = 300) -> str:
    """Return one short printable line: what a student's text may look like in a message."""
    line = re.sub(r"\s*[\r\n\t\f\v]\s*", " ", str(text)[: 4 * limit])
    line = line if len(line) <= limit else line[: limit - 1] + "…"
    return "".join(character if character.isprintable() else "?" for character in line)
