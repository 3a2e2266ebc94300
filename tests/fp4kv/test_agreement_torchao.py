"""`quantise_e2m1` against torchao's NVFP4 quantiser, which multiplies by a reciprocal and has a higher scale floor.

Scales must be the same bits wherever both floors allow it. Codes must be the same except where torchao's product and
the true quotient lie on two sides of a tie, and each such element is shown to be one.
"""

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from fp4kv import encode_e2m1, pack_nibbles, quantise_e2m1, round_to_e4m3
from labkit.expect import expect_bytes, expect_codes, expect_values
from labkit.formats import E2M1_TIES, E4M3_MIN_NORMAL, ScaleRule

RULES = list(ScaleRule)
# torchao rounds 1/t, (1/t)/s and the product; we round s · t and the quotient: each by at most 2^-24 of itself. The
# numbers on both sides of a tie are then within 3 roundings of the true quotient (4 with the products of errors).
ROUNDINGS = Fraction(4, 2**24)


@pytest.fixture(scope="module")
def torchao_quantise() -> Callable[..., Any]:
    """torchao's function, imported late: its warnings on import are its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize
    return nvfp4_quantize


def tensors(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Tensors of every kind, 64 × 256."""
    shape = (64, 256)
    normal = rng.normal(size=shape)
    wide = normal * np.exp2(rng.integers(-12, 12, (64, 1)))
    kinds = {
        "random": normal,
        "uniform": rng.uniform(-1, 1, shape),
        "heavy tails": rng.standard_t(1.5, shape),
        "rows of many sizes": wide,
        "tiny": normal * 1e-30,
        "huge": normal * 6e37,
        "constant": np.full(shape, 0.3),
        "constant, negative": np.full(shape, -1e5),
        "small integers": rng.integers(-6, 7, shape),
        "one outlier": np.where(np.arange(64 * 256).reshape(shape) == 5, 1e4, normal),
        "multiples of 2^-11": rng.integers(-4000, 4000, shape) * 2.0**-11,
    }
    kinds["quotients on ties"] = ties_of_scales(rng, shape)
    return {kind: x.astype(np.float32) for kind, x in kinds.items()}


def ties_of_scales(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Rows of which each has a random E4M3 scale, 6 of it once per group, and ties of it elsewhere."""
    scales = round_to_e4m3(np.exp2(rng.uniform(-6, 8, (shape[0], 1))).astype(np.float32))
    x = scales * rng.choice(E2M1_TIES, shape)
    x[:, ::16] = 6 * scales
    return x


KINDS = list(tensors(np.random.default_rng(0)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("kind", KINDS)
def test_scales_and_codes_agree(
    kind: str, rule: ScaleRule, rng: np.random.Generator, torchao_quantise: Callable[..., Any]
) -> None:
    x = tensors(rng)[kind]
    ours = quantise_e2m1(x, rule)
    scales, codes = theirs(torchao_quantise, x, ours.tensor_scale if rule is ScaleRule.TENSOR_AND_GROUP else None)

    expect_values(scales, np.maximum(ours.scales, np.float32(E4M3_MIN_NORMAL)), given=f"{kind}: their floor is 2^-6")

    steps = np.repeat(ours.scales, 16, axis=-1) * np.float32(ours.tensor_scale)
    products = x * reciprocal(np.repeat(scales, 16, axis=-1), ours.tensor_scale)
    same_floor = np.repeat(ours.scales >= E4M3_MIN_NORMAL, 16, axis=-1)
    expect_codes(codes, encode_e2m1(products), given=products)
    for index in np.argwhere(same_floor & (codes != ours.codes)):
        at = tuple(index)
        exact = Fraction(float(x[at])) / (
            Fraction(float(steps[at])) if rule is ScaleRule.GROUP else true_step(ours, at)
        )
        assert_straddles_a_tie(Fraction(float(products[at])), Fraction(float(x[at] / steps[at])), exact)


def theirs(quantise: Callable[..., Any], x: np.ndarray, tensor_scale: float | None) -> tuple[np.ndarray, np.ndarray]:
    """torchao's scales and codes; its packed bytes must be ours for the same codes."""
    import torch

    per_tensor = None if tensor_scale is None else torch.tensor(tensor_scale, dtype=torch.float32)
    scales, packed = quantise(torch.from_numpy(x), 16, per_tensor)
    packed = packed.numpy()
    codes = np.stack([packed & 0b1111, packed >> 4], axis=-1).reshape(x.shape)
    expect_bytes(pack_nibbles(codes), packed, given="torchao's own codes")
    return scales.to(torch.float32).numpy().reshape(x.shape[0], -1), codes


def reciprocal(scales: np.ndarray, tensor_scale: float) -> np.ndarray:
    """The factor that torchao multiplies by, rounded as it rounds it."""
    return (np.float32(1) / np.float32(tensor_scale)) / scales


def true_step(quantised: Any, at: tuple[int, ...]) -> Fraction:
    """s · t of one element, not rounded."""
    return Fraction(float(quantised.scales[at[0], at[1] // 16])) * Fraction(quantised.tensor_scale)


def assert_straddles_a_tie(product: Fraction, quotient: Fraction, exact: Fraction) -> None:
    """Both numbers are the true quotient but for rounding, and a tie lies between them or is one of them."""
    low, high = sorted([abs(product), abs(quotient)])
    assert low < high, f"the same number {float(low)} has two codes"
    assert any(low <= Fraction(float(tie)) <= high for tie in E2M1_TIES), f"no tie from {float(low)} to {float(high)}"
    for number in (product, quotient):
        assert abs(number - exact) <= ROUNDINGS * abs(exact), f"{float(number)} is not {float(exact)}"


def test_their_reciprocal_does_move_a_tie(torchao_quantise: Callable[..., Any]) -> None:
    scale = np.float32(15 * 2.0**-9)
    x = np.float32([[6 * scale, 1.25 * scale, *[0] * 14]])
    _, codes = theirs(torchao_quantise, x, None)
    assert (codes[0, 1], quantise_e2m1(x).codes[0, 1]) == (3, 2)
    assert_straddles_a_tie(
        Fraction(float(x[0, 1] * (np.float32(1) / scale))), Fraction(float(x[0, 1] / scale)), Fraction(5, 4)
    )
