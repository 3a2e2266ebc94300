"""Every scheme: what comes back is what the reference gives back, and its bits are those that are stored."""

import math

import numpy as np
import pytest
from fp4kv import decode_e2m1, dequantise, encode_e2m1, quantise_e2m1, quantise_int, round_to_e4m3, ue8m0_exponent
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labkit.block_formats import round_trip_fp8, round_trip_mxfp4
from labkit.expect import expect_values
from labkit.plotting import COLOURS
from labkit.schemes import ROWS_AT_ONCE, SCHEMES, Placement, Scheme, SweepRow

BY_NAME = {scheme.name: scheme for scheme in SCHEMES}
REFERENCES = {
    "FP16": lambda x: np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32),
    "FP8, UE8M0 per 32": lambda x: round_trip_fp8(x, round_to_e4m3, ue8m0_exponent),
    **{f"INT{b}": lambda x, b=b: dequantise(quantise_int(x, bits=b, group=32)) for b in (8, 6, 4, 3, 2)},
    "E2M1, E4M3 per 16": lambda x: dequantise(quantise_e2m1(x)),
    "MXFP4": lambda x: round_trip_mxfp4(x, encode_e2m1, decode_e2m1),
}
FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
ARRAYS = hnp.arrays(
    np.float32, st.tuples(st.integers(1, 3), st.sampled_from([32, 64])), elements=FLOAT32 | st.floats(-8, 8, width=32)
)


def test_the_sweep_has_the_baseline_and_eight_formats() -> None:
    assert list(BY_NAME) == list(REFERENCES) and SCHEMES[0].bits_per_element == 16
    assert len(Placement) == 3 and SweepRow._fields == ("scheme", "placement", "bits_per_element", "error")


@pytest.mark.parametrize("name", BY_NAME)
@given(x=ARRAYS)
def test_a_scheme_gives_back_what_the_reference_does(name: str, x: np.ndarray) -> None:
    expect_values(BY_NAME[name].round_trip(x), REFERENCES[name](x), given=x, signed_zeros=True)


@pytest.mark.parametrize("scheme", SCHEMES[1:], ids=lambda scheme: scheme.name)
def test_what_comes_back_can_be_told_apart_in_no_more_than_the_stated_bits(scheme: Scheme, rng) -> None:
    # In one group the codes alone tell elements apart: at most 2^bits values, and more than half of them are used.
    bits = math.floor(scheme.bits_per_element) - scheme.name.startswith("INT")
    group = np.ldexp(rng.uniform(-1, 1, (1, 1 << 21)), 4).astype(np.float32)
    group[0, ::16] = 16  # the largest of every group, so that they share one scale
    n_values = len(np.unique(scheme.round_trip(group)))
    assert 2**bits * 0.4 <= n_values <= 2**bits


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_a_scheme_keeps_shapes_types_and_its_input(scheme: Scheme, rng: np.random.Generator) -> None:
    for shape in ((32,), (3, 64), (2, 3, 96), (0, 32), (4, 0)):
        x = rng.normal(size=shape).astype(np.float32)
        before = x.copy()
        decoded = scheme.round_trip(x)
        assert decoded.shape == shape and decoded.dtype == np.float32
        expect_values(x, before, given="the input after the call")


@pytest.mark.parametrize("name", BY_NAME)
def test_more_rows_than_are_computed_at_once_come_back_alike(name: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, ROWS_AT_ONCE + 3, 32)).astype(np.float32).swapaxes(0, 1)
    expect_values(BY_NAME[name].round_trip(x), REFERENCES[name](x), given="rows that are not contiguous")


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_a_scheme_stays_finite_at_the_ends_of_float32(scheme: Scheme) -> None:
    ends = np.float32([np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal, 0, -65520])
    assert np.isfinite(scheme.round_trip(np.resize(ends, (4, 32)))).all()


@pytest.mark.parametrize("scheme", SCHEMES[1:], ids=lambda scheme: scheme.name)
def test_only_widths_of_whole_groups_are_taken(scheme: Scheme) -> None:
    with pytest.raises(ValueError, match=r"expected a (last axis that is a multiple of|divisor of)"):
        scheme.round_trip(np.ones((2, 40), np.float32))


def test_every_scheme_has_a_colour_of_the_course() -> None:
    assert {scheme.colour for scheme in SCHEMES} <= set(COLOURS)


def test_more_bits_of_one_kind_lose_less(rng: np.random.Generator) -> None:
    x = rng.normal(size=(200, 64)).astype(np.float32)
    errors = {scheme.name: float(np.square(scheme.round_trip(x) - x).mean()) for scheme in SCHEMES}
    ordered = ["FP16", "INT8", "INT6", "INT4", "INT3", "INT2"]
    assert [errors[name] for name in ordered] == sorted(errors[name] for name in ordered)
    assert errors["FP8, UE8M0 per 32"] < errors["E2M1, E4M3 per 16"] < errors["MXFP4"]
