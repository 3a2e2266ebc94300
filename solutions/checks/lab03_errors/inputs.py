"""What the checks of lab 3 share: caches, worst cases, and how a bound is held against an error."""

from typing import Any

import fp4kv
import numpy as np
from labkit.expect import Mismatch, expect_dtype_and_shape, plain_array, show_given, show_number
from labkit.formats import E2M1_VALUES, QuantisedE2M1

ROUNDING_SHARE = 1e-9
"""Share by which a float64 bound may be below an error that it equals: sums of up to 2^12 terms in any order are off
by less than 2^12 · 2^-53, 5e-13 of their terms."""

SMALLEST_ERROR = 1e-12
"""What an error that is zero may come to in float64, from outputs of size up to 2^10: a few steps of 2^-43."""

TIGHT = 1.001
"""How far above the printed formula a bound may be: room for float32, none for another formula (the nearest, ε/2 for
tanh(ε/2), is 9 % higher where tanh(ε/2) = ½ and 2 % where it is ¼)."""

NEAR_EDGE = 1 - 2.0**-10
"""How far towards the edge of its cell an element is moved: float32 rounding, 2^-24, never takes it across."""

SLIP = 40
"""The factor by which a student's own earlier answer may be off and still be asked what it makes of a later one. Scales
of one check differ by up to 32, so one that is given to the wrong group is off by as much; a forgotten √D is 8 at
width 64. A function that lies, to agree with a later answer of 0 or infinity, is off by more."""

RADIUS = 0.25
"""The radius of codes 1 to 3, in units of the scale; their cells reach as far down as up."""


def plain_codes(cases: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return codes 1 to 3: positive, none of them the largest of a group, all with one radius."""
    return np.asarray(cases.rng.integers(1, 4, shape), np.uint8)


def power_scales(cases: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return powers of two that E4M3 has: six times one of them is a group's largest magnitude, exactly."""
    return np.float32(2.0 ** cases.rng.integers(-3, 3, shape))


def peaks(cases: Any, width: int) -> np.ndarray:
    """Return one channel of each group, to hold its largest magnitude."""
    return np.arange(0, width, 16) + cases.rng.integers(0, 16, width // 16)


def keys_at_edges(cases: Any, n_tokens: int, q: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return keys that lie as far from what they are decoded to as their cells allow, all to the side of q.

    Channels `at` hold the largest magnitude of their groups; q must be 0 there.
    """
    values = E2M1_VALUES[plain_codes(cases, (n_tokens, q.size))] + RADIUS * NEAR_EDGE * np.sign(q)
    values[:, at] = 6
    return np.float32(values * np.repeat(power_scales(cases, (n_tokens, q.size // 16)), 16, axis=-1))


def turned_keys(cases: Any, epsilon: float, n_others: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a query and keys whose first two logits are ±ε before they are quantised, and ∓ε after.

    No weight can change by more than tanh(ε / 2), and theirs do. The keys of the others are zeros, far below.
    """
    width = 32
    at = peaks(cases, width)
    order = cases.rng.permutation(np.setdiff1d(np.arange(width), at))
    same, apart = order[:15], order[15:]

    size = cases.rng.uniform(0.5, 1.5, width)
    size[at], size[same], size[apart] = 0, size[same] / size[same].sum(), size[apart] / size[apart].sum()
    q = np.float32(size * 2 * epsilon * np.sqrt(width))  # so that RADIUS · Σ q / √D is ε: every scale is 1

    codes = np.tile(cases.rng.integers(1, 3, width), (2, 1))
    codes[1, apart] += 1  # half a scale apart, where q adds up to half of it all
    moved = E2M1_VALUES[codes] + RADIUS * NEAR_EDGE * np.array([[1], [-1]])
    moved[:, at] = 6
    return q[None], np.float32(np.concatenate([moved, np.zeros((n_others, width))]))


def true_errors(q: np.ndarray, keys: np.ndarray, values: np.ndarray) -> tuple[Any, Any, np.ndarray]:
    """Return the packed keys, the packed values, and how far packing moves each output."""
    packed = fp4kv.quantise_e2m1(keys), fp4kv.quantise_e2m1(values)
    exact = fp4kv.attend(q, keys, values)
    got = fp4kv.attend(q, fp4kv.dequantise(packed[0]), fp4kv.dequantise(packed[1]))
    return (*packed, np.linalg.norm(got - exact, axis=-1))


def expect_bound(got: Any, given: Any, errors: Any = None, formula: Any = None, hint: str = "") -> None:
    """Expect numbers that are nowhere below the errors, and nowhere more than 0.1 % above the formula."""
    shape = np.asarray(errors if formula is None else formula, np.float64)
    found = expect_dtype_and_shape(got, shape, given, hint, any_width=True)
    least = np.zeros_like(shape) if errors is None else np.asarray(errors) * (1 - ROUNDING_SHARE) - SMALLEST_ERROR
    most = np.full_like(shape, np.inf) if formula is None else np.asarray(formula) * TIGHT + SMALLEST_ERROR
    _refuse(~(found >= least), "at least {}, an error that occurs", least, found, given, hint)
    _refuse(~(found <= most), "at most {}, the formula and 0.1 %", most, found, given, hint)


def _refuse(bad: np.ndarray, rule: str, limit: np.ndarray, found: np.ndarray, given: Any, hint: str) -> None:
    if np.any(bad):
        index = tuple(np.argwhere(bad)[0].tolist())
        raise Mismatch(
            rule.format(show_number(limit[index])), show_number(found[index]), show_given(given), index, hint
        )


def agrees(got: Any, expected: np.ndarray, room: float = 1e-6) -> bool:
    """Tell whether an answer is, up to rounding, what the student's own functions give."""
    found = plain_array(got)
    if found.shape != expected.shape or found.dtype.kind not in "iuf":
        return False
    with np.errstate(invalid="ignore", over="ignore"):
        is_near = np.isfinite(expected) & (np.abs(found - expected) <= room * np.abs(expected))
    return bool(np.all(is_near | (found == expected)))


def own(got: Any, right: Any, least: Any = None) -> np.ndarray:
    """Return what one of the student's functions gave, if it can stand for the right numbers, or the least of them.

    Raises
    ------
    Mismatch
        If it is off by more than a factor of `SLIP`.
    """
    found = expect_dtype_and_shape(got, np.asarray(right, np.float64), "", any_width=True).astype(np.float64)
    low = np.asarray(right if least is None else least) / SLIP
    if not np.all((found >= low * (1 - ROUNDING_SHARE)) & (found <= np.asarray(right) * SLIP)):
        raise Mismatch(f"an earlier answer that is right within a factor of {SLIP}", "another")
    return found


def own_weights(student: Any, q: np.ndarray, keys: np.ndarray, *is_visible: np.ndarray) -> np.ndarray:
    """Return the student's own weights, if they are shares, though perhaps not of a whole."""
    right = fp4kv.attention_weights(q, keys, *is_visible)
    got = student.attention_weights(q, keys, *is_visible)
    found = expect_dtype_and_shape(got, right, "", any_width=True).astype(np.float64)
    total = found.sum(axis=-1)
    if not (np.all((found >= 0) & (found <= 1 + ROUNDING_SHARE)) and np.all((total >= 1 / SLIP) & (total <= SLIP))):
        raise Mismatch("shares of a weight of 1", show_number(total))
    return found


def own_radii(student: Any, quantised: QuantisedE2M1) -> np.ndarray:
    """Return the student's own radii, if they can stand for the right ones; none may be infinite but where it is."""
    least = RADIUS * np.repeat(quantised.scales.astype(np.float64), 16, axis=-1)
    return own(student.error_radius(quantised), fp4kv.error_radius(quantised), least)


def packed(codes: Any, scales: Any) -> QuantisedE2M1:
    """Return a packed array without a tensor scale."""
    return QuantisedE2M1(np.asarray(codes, np.uint8), np.asarray(scales, np.float32), 1.0)
