"""Checks of the section *debug*: the judge's own suspects, made of the reference's parts, hear the evidence."""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, plain_array
from labkit.suspects import lab02 as suspects

from autograder.checks import Registry

checks = Registry()
check = checks.check

PARTS = suspects.Parts(
    fp4kv.quantise_e2m1, fp4kv.encode_e2m1, fp4kv.pack_nibbles, fp4kv.unpack_nibbles, fp4kv.dequantise
)

FEWEST = {"half_away": 1, "lost_subnormal": 2, "swapped_nibbles": 1, "zero_to_nan": 0, "reciprocal": 4}
"""The fewest elements other than zero with which a suspect is convicted and no other.

half_away: a tie under the floor scale 2^-9, rounded to 0 by the honest one, so both halves of the byte are 0.
lost_subnormal and reciprocal: the honest codes differ from the suspect's and are not 0, so each byte that is not 0
needs two equal halves, or swapped_nibbles is convicted too; reciprocal needs another byte for the largest element,
because under the scale that a lone element chooses, its quotient is beside no tie that a reciprocal could move.
"""

LARGEST_EXHIBIT = 4096


def _convicts(suspect: str) -> None:
    """Register the check that one suspect's input convicts it."""

    def convicts_its_suspect(student: Any, cases: Any) -> None:
        x = _exhibit(student.convict(), suspect)
        if suspect not in suspects.convicted(x, PARTS):
            raise Mismatch(f"{suspect} answers otherwise than the honest quantiser", "the same answer", f"{x.tolist()}")

    convicts_its_suspect.__doc__ = f"The input for `{suspect}` makes it answer otherwise than the honest quantiser."
    check(
        f"convict-{suspect}",
        points=1,
        catches=f"does not find what {suspect} does wrong",
        hint="print suspects.convicted(x, parts) for your input, once your own functions pass their checks",
        reveal=True,
        per_student=False,
    )(convicts_its_suspect)


for _suspect in suspects.SUSPECTS:
    _convicts(_suspect)


@check(
    "convict-alone",
    points=1,
    catches="convicts an innocent suspect too",
    hint="two equal codes in a byte cannot convict swapped_nibbles",
    reveal=True,
    per_student=False,
)
def no_input_convicts_another(student: Any, cases: Any) -> None:
    """Each input convicts its own suspect and none of the other four."""
    exhibits = student.convict()
    for suspect in suspects.SUSPECTS:
        x = _exhibit(exhibits, suspect)
        others = [name for name in suspects.convicted(x, PARTS) if name != suspect]
        if others:
            raise Mismatch(f"{suspect} alone", f"{', '.join(others)} convicted too", f"{x.tolist()}")


@check(
    "convict-fewest",
    points=1,
    catches="needs more elements than the mistake does",
    hint="under the smallest scale, 2^-9, a group needs no large element to set its scale",
    reveal=True,
    per_student=False,
)
def inputs_are_as_small_as_can_be(student: Any, cases: Any) -> None:
    """Each input has as few elements other than zero as convicting one suspect alone allows."""
    exhibits = student.convict()
    for suspect, fewest in FEWEST.items():
        count = int(np.count_nonzero(_exhibit(exhibits, suspect)))
        if count > fewest:
            raise Mismatch(f"fewer elements other than zero for {suspect}", f"{count}")


def _exhibit(exhibits: Any, suspect: str) -> np.ndarray:
    """Return the input for one suspect, if it is one that the quantisers accept."""
    if not isinstance(exhibits, dict) or suspect not in exhibits:
        raise Mismatch(f"a dict with an input for {suspect}", f"a {type(exhibits).__name__} without")
    found = plain_array(exhibits[suspect])
    is_sound = found.ndim > 0 and found.shape[-1] % 16 == 0 and 0 < found.size <= LARGEST_EXHIBIT
    with np.errstate(over="ignore"):
        x = found.astype(np.float32)
    if not is_sound or not np.all(np.isfinite(x)):
        raise Mismatch(
            f"finite numbers, a multiple of 16 in the last axis and at most {LARGEST_EXHIBIT}, for {suspect}",
            f"shape {found.shape}",
        )
    return x
