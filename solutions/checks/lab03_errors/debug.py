"""Checks of the section *debug*: the judge's own suspects hear the evidence, with the reference's softmax."""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, plain_array
from labkit.formats import GROUP_LENGTH
from labkit.suspects import lab03 as suspects

from autograder.checks import Registry

checks = Registry()
check = checks.check

FEWEST = {"double_rounding": 1, "narrow_sum": 2, "low_mask": 3}
"""The fewest elements other than zero, in queries, keys and values together, that convict a suspect and no other.

double_rounding: zeros stay zeros, so one is needed, and one value that lies beside a tie is enough.
narrow_sum: a sum of products needs an element of q and one of the keys; an infinite logit turns any output to NaN.
low_mask: the visible logit must be below -9,900, which takes an element of q and one of the keys, and the outputs
differ only where some value is not zero.
"""

LARGEST_EXHIBIT = 4096


def _convicts(suspect: str) -> None:
    """Register the check that one suspect's exhibit convicts it."""

    def convicts_its_suspect(student: Any, cases: Any) -> None:
        exhibit = _exhibit(student.convict(), suspect)
        if suspect not in _convicted(exhibit):
            raise Mismatch(f"{suspect} answers otherwise than the honest attention", "the same answer", _tell(exhibit))

    convicts_its_suspect.__doc__ = f"The exhibit for `{suspect}` makes it answer otherwise than the honest attention."
    check(
        f"convict-{suspect}",
        points=1,
        catches=f"does not find what {suspect} does wrong",
        hint="print suspects.convicted(exhibit, attention_weights), once attention_weights passes its checks",
        reveal=True,
        per_student=False,
    )(convicts_its_suspect)


for _suspect in suspects.SUSPECTS:
    _convicts(_suspect)


@check(
    "convict-alone",
    points=1,
    catches="convicts an innocent suspect too",
    hint="a logit of -10,000 is q·k / √D: with wide keys q·k itself leaves the range of FP16",
    reveal=True,
    per_student=False,
)
def no_exhibit_convicts_another(student: Any, cases: Any) -> None:
    """Each exhibit convicts its own suspect and neither of the other two."""
    exhibits = student.convict()
    n_convicted = 0
    for suspect in suspects.SUSPECTS:
        exhibit = _exhibit(exhibits, suspect)
        found = _convicted(exhibit)
        if others := [name for name in found if name != suspect]:
            raise Mismatch(f"{suspect} alone", f"{', '.join(others)} convicted too", _tell(exhibit))
        n_convicted += suspect in found
    if not n_convicted:
        raise Mismatch("an exhibit that convicts its suspect", "three that convict nobody")


@check(
    "convict-fewest",
    points=1,
    catches="needs more elements than the mistake does",
    hint="a lone token has weight 1 whatever its logit; an output of zeros that turns to NaN is evidence too",
    reveal=True,
    per_student=False,
)
def exhibits_are_as_small_as_can_be(student: Any, cases: Any) -> None:
    """Each exhibit has as few elements other than zero as convicting one suspect alone allows."""
    exhibits = student.convict()
    for suspect, fewest in FEWEST.items():
        exhibit = _exhibit(exhibits, suspect)
        count = sum(int(np.count_nonzero(part)) for part in exhibit[:3])
        if count > fewest or _convicted(exhibit) != [suspect]:
            raise Mismatch(f"{suspect} alone, by fewer elements other than zero", f"{count}", _tell(exhibit))


def _convicted(exhibit: suspects.Exhibit) -> list[str]:
    return suspects.convicted(exhibit, fp4kv.attention_weights)


def _exhibit(exhibits: Any, suspect: str) -> suspects.Exhibit:
    """Return the exhibit for one suspect, if it is one that an attention accepts."""
    if not isinstance(exhibits, dict) or suspect not in exhibits:
        raise Mismatch(f"a dict with an exhibit for {suspect}", f"a {type(exhibits).__name__} without")
    parts = exhibits[suspect]
    if not isinstance(parts, tuple | list) or len(parts) != 4:
        raise Mismatch("Exhibit(q, keys, values, is_visible)", f"a {type(parts).__name__}", suspect)
    arrays = [plain_array(part, suspect) for part in parts]
    if max(array.size for array in arrays) > LARGEST_EXHIBIT or any(array.ndim != 2 for array in arrays):
        raise Mismatch(f"arrays of two axes with at most {LARGEST_EXHIBIT} elements", f"{_shapes(arrays)}", suspect)
    if any(array.shape[-1] % GROUP_LENGTH or not array.size for array in arrays[:3]):
        raise Mismatch(f"widths that are multiples of {GROUP_LENGTH}", f"{_shapes(arrays)}", suspect)
    with np.errstate(over="ignore"):
        exhibit = suspects.Exhibit(*(array.astype(np.float32) for array in arrays[:3]), arrays[3].astype(bool))
    try:
        _convicted(exhibit)
    except ValueError as error:
        raise Mismatch("an exhibit that fits together", str(error), suspect) from None
    return exhibit


def _shapes(arrays: list[np.ndarray]) -> list[tuple[int, ...]]:
    return [array.shape for array in arrays]


def _tell(exhibit: suspects.Exhibit) -> str:
    nonzero = [
        f"{name} {part[part != 0].tolist()}" for name, part in zip(("q", "keys", "values"), exhibit, strict=False)
    ]
    return f"{len(exhibit.keys)} tokens of width {exhibit.q.shape[-1]}; not zero: {', '.join(nonzero)}"
