"""Checks of the section *debug*: caches drawn for this submission, diagnosed and repaired, verified outside."""

from typing import Any

import numpy as np
from labkit.expect import Mismatch, plain_array
from labkit.suspects.lab04 import REPAIRED_ERROR, Case, Cause, Diagnosis, make_case, restore

from autograder.checks import Registry, as_member

from .inputs import as_number

checks = Registry()
check = checks.check

N_OWN, N_OTHER = 5, 2
"""Cases of a cause that must be named in full, and cases of each other cause that must not be taken for it."""

N_REPAIRED = 3

HINTS = {
    Cause.STALE_AMAX: "compare the scales with those that quantise_e2m1 would choose; where do they differ?",
    Cause.WRONG_AXIS: "compare the scales with those that quantise_e2m1 would choose; where do they differ?",
    Cause.OUTLIER: "sound scales and a large error: look at the worst group, channel by channel",
    Cause.SCALE_FLOOR: "sound scales and a large error, but no channel is louder than the others: how large are they?",
}


def _names(cause: Cause, labels: str) -> None:
    """Register the check that cases of a cause are named in full, and no others are taken for it."""

    def is_named_jointly(student: Any, cases: Any) -> None:
        drawn = [cause] * N_OWN + [other for other in Cause if other is not cause] * N_OTHER
        for index in cases.rng.permutation(len(drawn)):
            case = make_case(drawn[index], cases.rng)
            got = _as_diagnosis(student.diagnose(case.x, case.decoded, case.scales))
            if drawn[index] is cause and got != case.truth:
                raise Mismatch(_show(case.truth), _show(got), _show_case(case))
            if drawn[index] is not cause and got.cause is cause:
                raise Mismatch(_show(case.truth), _show(got), _show_case(case))

    is_named_jointly.__doc__ = f"{cause.name}: every such cache is named with {labels}, and no other one is."
    check(
        f"diagnose-{cause.name.lower()}",
        points=1,
        catches=f"takes another cause for {cause.name}, or names the wrong place",
        hint=HINTS[cause],
        seconds=5,
    )(is_named_jointly)


_names(Cause.STALE_AMAX, "its group")
_names(Cause.WRONG_AXIS, "no group and no channel")
_names(Cause.OUTLIER, "its group and its channel")
_names(Cause.SCALE_FLOOR, "its group")


def _as_diagnosis(got: Any) -> Diagnosis:
    """Return a diagnosis, if the answer has the parts of one; numbers of any whole type will do."""
    if not isinstance(got, tuple) or len(got) != 3:
        raise Mismatch("a Diagnosis: cause, group, channel", f"a {type(got).__name__}")
    return Diagnosis(
        as_member(Cause, got[0], " as the cause"), *(None if label is None else _as_index(label) for label in got[1:])
    )


def _as_index(label: Any) -> int:
    if plain_array(label).dtype.kind not in "iu":
        raise Mismatch("a whole number or None as group and channel", f"a {type(label).__name__}")
    return int(as_number(label, "group or channel"))


def _show(diagnosis: Diagnosis) -> str:
    return f"{diagnosis.cause.name}, group {diagnosis.group}, channel {diagnosis.channel}"


def _show_case(case: Case) -> str:
    return f"a cache of shape {case.x.shape}"


@check(
    "repair-scales",
    points=1,
    catches="keeps scales that were wrong, or breaks what was sound",
    hint="the scales are yours to choose: quantise_e2m1(x / 2.0 ** exponents)",
    seconds=5,
)
def wrong_scales_are_made_anew(student: Any, cases: Any) -> None:
    """A cache whose scales were stale, or along the wrong axis, is repaired at 4.5 + 8/T bits."""
    for cause in (Cause.STALE_AMAX, Cause.WRONG_AXIS) * N_REPAIRED:
        _expect_repaired(student, cases, cause)


@check(
    "repair-outlier",
    points=2,
    catches="quantises anew and leaves the outlier to set its group's scales",
    hint="an exponent per channel can make all channels of a group equally loud before they share a scale",
    seconds=5,
)
def an_outlier_is_taken_out_of_its_group(student: Any, cases: Any) -> None:
    """A cache with an outlier is repaired at 4.5 + 8/T bits: its group's other channels come back."""
    for _ in range(2 * N_REPAIRED):
        _expect_repaired(student, cases, Cause.OUTLIER)


@check(
    "repair-floor",
    points=1,
    catches="leaves a group below the smallest scale",
    hint="an exponent per channel can lift small channels before they are scaled",
    seconds=5,
)
def a_small_group_is_lifted_above_the_floor(student: Any, cases: Any) -> None:
    """A cache with a group below the smallest scale is repaired at 4.5 + 8/T bits: the group comes back."""
    for _ in range(2 * N_REPAIRED):
        _expect_repaired(student, cases, Cause.SCALE_FLOOR)


def _expect_repaired(student: Any, cases: Any, cause: Cause) -> None:
    case = make_case(cause, cases.rng)
    restored = restore(student.repair(case.x), case.x.shape)
    size = np.linalg.norm(case.x.astype(np.float64), axis=0)
    error = float((np.linalg.norm(case.x - restored, axis=0) / size).mean())
    if not error <= REPAIRED_ERROR:
        raise Mismatch(f"a mean channel error of at most {REPAIRED_ERROR}", f"{error:.3f}", _show_case(case))
