"""What later labs are given of lab 2 is what the reference gives: bit for bit, type for type, refusal for refusal."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import fp4kv
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given as each
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labkit.expect import expect_values
from labkit.formats import E2M1_TIES, E2M1_VALUES, FLOAT32_MAX, INTEGER_BITS, QuantisedE2M1, QuantisedInt, ScaleRule
from labkit.given import lab02

DTYPES = [np.float16, np.float32, np.float64]
WIDTHS = {np.float16: 16, np.float32: 32, np.float64: 64}
ROUNDINGS = ("encode_e2m1", "round_to_e4m3", "ue8m0_exponent")
BIG = np.finfo(np.float64).max


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns, or the type and text of what it raises; without the shape checks of either side."""
    try:
        return inspect.unwrap(function)(*arguments)
    except (ValueError, TypeError) as error:
        return type(error), str(error)


def agree(name: str, *arguments: Any) -> None:
    """Both sides return the same bits in the same types, or raise the same."""
    got, expected = (outcome(getattr(side, name), *arguments) for side in (lab02, fp4kv))
    assert type(got) is type(expected), (got, expected)
    is_record = isinstance(expected, QuantisedE2M1 | QuantisedInt)
    for ours, theirs in zip(*((got, expected) if is_record else ((got,), (expected,))), strict=True):
        if not isinstance(theirs, np.ndarray):
            assert ours == theirs and type(ours) is type(theirs), (ours, theirs)
            continue
        expect_values(ours, theirs, given=arguments, signed_zeros=True)
        assert ours.dtype == theirs.dtype


def edges(dtype: type) -> np.ndarray:
    """Values, ties and limits of E2M1, E4M3 and UE8M0 with the numbers beside them, both signs, in this type."""
    e4m3 = np.arange(127, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    powers = 448 * np.exp2(np.arange(-30.0, 8))
    points = np.concatenate([E2M1_VALUES, E2M1_TIES, e4m3, (e4m3[1:] + e4m3[:-1]) / 2, powers, [464, 1e-4, 65504]])
    points = np.unique(points[points <= np.finfo(dtype).max].astype(dtype))
    both = np.concatenate([points, -points])
    with np.errstate(over="ignore"):  # beside the largest is infinity
        return np.concatenate([both, np.nextafter(both, dtype(np.inf)), np.nextafter(both, dtype(-np.inf))])


def test_all_nine_tasks_of_lab_2_are_given() -> None:
    tasks = {name for name in fp4kv.__all__ if getattr(fp4kv, name).__module__ in ("fp4kv.codes", "fp4kv.arrays")}
    assert set(lab02.__all__) == tasks and len(tasks) == 9
    for name in tasks:
        theirs, ours = (inspect.signature(inspect.unwrap(getattr(side, name))) for side in (fp4kv, lab02))
        assert str(theirs) == str(ours), name


@pytest.mark.parametrize("name", ROUNDINGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_agrees_at_and_beside_every_edge(name: str, dtype: type) -> None:
    x = edges(dtype)
    finite = x[np.isfinite(x)]
    agree(name, np.abs(finite) if name == "ue8m0_exponent" else finite)


@pytest.mark.parametrize("name", ROUNDINGS)
def test_float64_beside_ties_is_rounded_once(name: str) -> None:
    # Less than half a float32 from a tie: through float32 these would be the tie, which may go the other way.
    points = edges(np.float32)[: len(edges(np.float32)) // 3].astype(np.float64)
    shifts = np.exp2([-25.0, -30.0, -40.0, -52.0])[:, None]
    for shift in (*shifts, *-shifts):
        x = points * (1 + shift)
        agree(name, np.abs(x) if name == "ue8m0_exponent" else x)


@pytest.mark.parametrize("name", ROUNDINGS)
@pytest.mark.parametrize("value", [0.0, -0.0, 5e-324, -5e-324, 1e-46, 2.0**-149, -1e-40, 3.5e38, 1e39, BIG])
def test_float64_beyond_float32_agrees(name: str, value: float) -> None:
    agree(name, np.array([value]))
    agree(name, np.array(value))  # 0-dimensional


@pytest.mark.parametrize("name", ROUNDINGS)
@pytest.mark.parametrize("dtype", DTYPES)
@each(data=st.data())
def test_rounding_agrees_for_any_number(name: str, dtype: type, data: st.DataObject) -> None:
    numbers = st.floats(width=WIDTHS[dtype])  # NaN and infinities included
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    agree(name, data.draw(hnp.arrays(dtype, shapes, elements=numbers)))


def test_every_finite_bfloat16_and_float16_agrees() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    for x in (bits.view(ml_dtypes.bfloat16).astype(np.float32), bits.view(np.float16)):
        finite = x[np.isfinite(x)]
        agree("encode_e2m1", finite)
        agree("round_to_e4m3", finite)


def test_codes_and_bytes_agree_exhaustively() -> None:
    every = np.arange(256, dtype=np.uint8)
    agree("unpack_nibbles", every)
    agree("decode_e2m1", every[:16])
    agree("pack_nibbles", np.stack(np.divmod(every, 16), axis=-1).astype(np.uint8))
    for code in every[16:]:
        agree("decode_e2m1", np.array([[3], [code]]))
        agree("pack_nibbles", np.array([3, code]))


@pytest.mark.parametrize("name", ["decode_e2m1", "pack_nibbles", "unpack_nibbles"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.float32, bool])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (3, 0), (2, 1, 4)])
def test_codes_of_any_type_and_shape_agree(name: str, dtype: type, shape: tuple[int, ...]) -> None:
    agree(name, np.ones(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rule", list(ScaleRule))
@each(data=st.data())
def test_e2m1_arrays_agree(rule: ScaleRule, dtype: type, data: st.DataObject) -> None:
    numbers = st.floats(width=WIDTHS[dtype]) | st.floats(-8, 8, width=16)
    shape = st.tuples(st.integers(0, 3), st.sampled_from([0, 16, 32, 24])) | st.just((16,)) | st.just(())
    x = data.draw(hnp.arrays(dtype, shape, elements=numbers, fill=st.just(0.5)))
    agree("quantise_e2m1", x, rule)
    if not isinstance(quantised := outcome(fp4kv.quantise_e2m1, x, rule), tuple) or isinstance(
        quantised, QuantisedE2M1
    ):
        agree("dequantise", quantised)


@pytest.mark.parametrize("dtype", DTYPES)
@each(data=st.data(), symmetric=st.booleans(), bits=st.sampled_from([*INTEGER_BITS, 5]))
def test_integer_arrays_agree(dtype: type, data: st.DataObject, symmetric: bool, bits: int) -> None:
    numbers = st.floats(width=WIDTHS[dtype], allow_nan=False) | st.floats(-8, 8, width=16)
    shape = data.draw(st.sampled_from([(8,), (4, 6), (2, 4, 4), (0, 4), (3, 0), ()]))
    x = data.draw(hnp.arrays(dtype, shape, elements=numbers, fill=st.just(0.5)))
    arguments = (x, bits, data.draw(st.sampled_from([0, 1, 2, 4, 3])), data.draw(st.integers(-4, 3)), symmetric)
    agree("quantise_int", *arguments)
    quantised = outcome(fp4kv.quantise_int, *arguments)
    if isinstance(quantised, QuantisedInt):
        agree("dequantise", quantised)


@pytest.mark.parametrize("rule", list(ScaleRule))
def test_whole_tensors_agree(rule: ScaleRule, rng: np.random.Generator) -> None:
    for x in (rng.normal(size=(3, 70, 128)), rng.standard_cauchy(size=(200, 64)), np.full((2, 16), FLOAT32_MAX)):
        agree("quantise_e2m1", x, rule)
        agree("dequantise", fp4kv.quantise_e2m1(x, rule))
        agree("quantise_e2m1", x.astype(np.float32).T[:, :16].T if x.ndim == 2 else x[::2, ::3], rule)  # strided


@pytest.mark.parametrize("scales", [(1, 1), (1, 3), (2, 2), (2,)])
def test_scales_of_other_codes_are_refused_alike(scales: tuple[int, ...]) -> None:
    ones = np.ones(scales, np.float32)
    agree("dequantise", QuantisedE2M1(np.ones((1, 32), np.uint8), ones, 1.0))
    agree("dequantise", QuantisedInt(np.ones((1, 32), np.int16), ones, ones, 16, -1))


def test_a_scale_rule_by_another_name_is_refused_alike() -> None:
    agree("quantise_e2m1", np.ones(16, np.float32), "tensor")
    kind, text = outcome(lab02.quantise_e2m1, np.ones(16, np.float32), "tensor")
    assert kind is ValueError and re.search("not a valid ScaleRule", text)
