"""Five faulty quantisers. Each is a round trip through packed bytes with one E4M3 scale per 16 elements.

They are built from the student's own functions, with one mistake each, so they are as good as those functions
but for the mistake, and give nothing away:

    half_away        an element halfway between two values goes to the larger magnitude
    lost_subnormal   the smallest magnitude, 0.5, is taken for zero
    swapped_nibbles  the two codes of a byte change places
    zero_to_nan      a group of zeros comes back as NaN
    reciprocal       elements are multiplied by 1/s, not divided by s

How a lab uses them:

    parts = Parts(quantise_e2m1, encode_e2m1, pack_nibbles, unpack_nibbles, dequantise)
    round_trip(x, parts)                    the honest quantiser
    SUSPECTS["half_away"](x, parts)         a suspect
    convicted(x, parts)                     names of the suspects that x convicts: ["half_away"]

An input convicts a suspect when the suspect's answer and the honest one differ somewhere (0.0 and -0.0 do not).
The smallest inputs, by number of elements that are not zero, that convict one suspect alone have 0 to 4 of them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from labkit.formats import GROUP_LENGTH, QuantisedE2M1

Array = Float32[np.ndarray, "... n"]


class Parts(NamedTuple):
    """The functions of the student that every round trip here is made of."""

    quantise_e2m1: Callable[..., QuantisedE2M1]
    encode_e2m1: Callable[[np.ndarray], np.ndarray]
    pack_nibbles: Callable[[np.ndarray], np.ndarray]
    unpack_nibbles: Callable[[np.ndarray], np.ndarray]
    dequantise: Callable[[QuantisedE2M1], np.ndarray]


Suspect = Callable[[Array, Parts], Array]


def round_trip(x: Array, parts: Parts) -> Array:
    """Return x quantised, packed, unpacked and dequantised by the given parts."""
    quantised = QuantisedE2M1(*parts.quantise_e2m1(x))
    return _through_bytes(quantised.codes, quantised, parts)


def half_away(x: Array, parts: Parts) -> Array:
    """Round trip whose elements halfway between two values go to the larger magnitude."""
    quantised = QuantisedE2M1(*parts.quantise_e2m1(x))
    outwards = 1 + 2.0**-40  # moves a tie over the edge, and is too little to move another float32
    quotients = x / np.repeat(quantised.scales, GROUP_LENGTH, axis=-1)
    return _through_bytes(parts.encode_e2m1(quotients.astype(np.float64) * outwards), quantised, parts)


def lost_subnormal(x: Array, parts: Parts) -> Array:
    """Round trip that takes the codes of ±0.5 for zero."""
    quantised = QuantisedE2M1(*parts.quantise_e2m1(x))
    is_subnormal = quantised.codes & 0b0_11_1 == 0b0_00_1
    return _through_bytes(np.where(is_subnormal, np.uint8(0), quantised.codes), quantised, parts)


def swapped_nibbles(x: Array, parts: Parts) -> Array:
    """Round trip whose writer and reader disagree on which half of a byte comes first."""
    quantised = QuantisedE2M1(*parts.quantise_e2m1(x))
    swapped = quantised.codes.reshape(-1, 2)[:, ::-1].reshape(quantised.codes.shape)
    return _through_bytes(swapped, quantised, parts)


def zero_to_nan(x: Array, parts: Parts) -> Array:
    """Round trip that divides a group of zeros by its amax."""
    is_zero = np.repeat(_has_only_zeros(x), GROUP_LENGTH, axis=-1)
    return np.where(is_zero, np.float32(np.nan), round_trip(x, parts))


def reciprocal(x: Array, parts: Parts) -> Array:
    """Round trip that rounds twice: once in 1/s, once in the product."""
    quantised = QuantisedE2M1(*parts.quantise_e2m1(x))
    factors = np.repeat(np.float32(1) / quantised.scales, GROUP_LENGTH, axis=-1)
    return _through_bytes(parts.encode_e2m1(x * factors), quantised, parts)


SUSPECTS: dict[str, Suspect] = {
    "half_away": half_away,
    "lost_subnormal": lost_subnormal,
    "swapped_nibbles": swapped_nibbles,
    "zero_to_nan": zero_to_nan,
    "reciprocal": reciprocal,
}


def convicted(x: Array, parts: Parts) -> list[str]:
    """Return the names of the suspects whose answer to x differs from the honest one."""
    honest = round_trip(x, parts)
    return [name for name, suspect in SUSPECTS.items() if not np.array_equal(suspect(x, parts), honest)]


def _through_bytes(codes: UInt8[np.ndarray, "... n"], quantised: QuantisedE2M1, parts: Parts) -> Array:
    unpacked = parts.unpack_nibbles(parts.pack_nibbles(codes))
    return parts.dequantise(quantised._replace(codes=unpacked))


def _has_only_zeros(x: Array) -> Bool[np.ndarray, "... n//16"]:
    groups = x.reshape(*x.shape[:-1], x.shape[-1] // GROUP_LENGTH, GROUP_LENGTH)
    return np.asarray(~np.any(groups, axis=-1))
