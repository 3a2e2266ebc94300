"""`error_radius`: no float32 value can have been further away, and for every code under every scale one nearly was."""

import inspect

import numpy as np
import pytest
from fp4kv import dequantise, error_radius, quantise_e2m1, round_to_e4m3
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from labkit.expect import expect_values
from labkit.formats import (
    E2M1_TIES,
    E4M3_MAX,
    E4M3_MIN_SUBNORMAL,
    FLOAT32_MAX,
    FLOAT32_TINY,
    GROUP_LENGTH,
    QuantisedE2M1,
    ScaleRule,
)

# Every scale that a group can get: all positive E4M3 values.
SCALES = np.unique(round_to_e4m3(np.arange(1, 448 * 512 + 1, dtype=np.float32) / 512))
BOUNDED = [float(scale) for scale in SCALES if scale < E4M3_MAX]
# The value furthest off stands at an edge or one float32 beside it: 2^-23 of the edge, which is at most 7 radii (1.75).
NEARLY = 1 - 7 * 2.0**-23
FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
GROUPS = hnp.arrays(np.float32, st.tuples(st.integers(1, 3), st.sampled_from([16, 32])), elements=FLOAT32)


def neighbours(points: np.ndarray) -> np.ndarray:
    """The points and two float32 numbers to each side of them."""
    up, down = np.float32(np.inf), np.float32(-np.inf)
    above, below = np.nextafter(points, up), np.nextafter(points, down)
    return np.concatenate([points, above, below, np.nextafter(above, up), np.nextafter(below, down)])


def groups_of_scale(scale: float) -> np.ndarray:
    """Groups that get this scale: values at and beside every edge of a cell, and the largest amax that gets it."""
    edges = neighbours(np.concatenate([[0], E2M1_TIES, [6]]).astype(np.float32) * np.float32(scale))
    edges = edges[np.abs(edges) <= np.float32(6 * scale)]
    step = max(E4M3_MIN_SUBNORMAL, 2.0 ** (np.floor(np.log2(scale)) - 3))
    amaxes = neighbours(np.float32([6 * scale, 6 * (scale + step / 2), 6 * (scale - step / 2), 6 * (scale - step / 4)]))
    groups = np.zeros((len(amaxes), -(-len(edges) // 15), GROUP_LENGTH), np.float32)
    groups[..., 0] = amaxes[:, None]
    groups[..., 1:] = np.resize(edges, groups[0, :, 1:].shape)
    groups = groups.reshape(-1, GROUP_LENGTH)
    groups[:, 1:] = np.clip(groups[:, 1:], -groups[:, :1], groups[:, :1])
    groups = groups[quantise_e2m1(groups).scales[:, 0] == np.float32(scale)]
    return np.concatenate([groups, -groups])


def errors_and_radii(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, true errors (exact: float32 numbers of one cell, in float64) and radii."""
    quantised = quantise_e2m1(x)
    return quantised.codes, np.abs(x.astype(np.float64) - dequantise(quantised)), error_radius(quantised)


def assert_within_radius(x: np.ndarray) -> None:
    """No element is further from what it is decoded to than its radius, without any tolerance."""
    _, errors, radii = errors_and_radii(x)
    outside = np.argwhere(errors > radii)
    assert not outside.size, f"{x[tuple(outside[0])]!r} in the group {x[tuple(outside[0][:-1])]}"


def test_there_are_126_scales() -> None:
    assert len(SCALES) == 126 and SCALES[0] == E4M3_MIN_SUBNORMAL and SCALES[-1] == E4M3_MAX


@pytest.mark.parametrize("scale", BOUNDED)
def test_radii_hold_and_are_attained_at_the_edges_of_every_cell(scale: float) -> None:
    x = groups_of_scale(scale)
    assert_within_radius(x)

    codes, errors, radii = errors_and_radii(x)
    for code in range(8):
        here = codes & 7 == code
        reached = errors[here] / radii[here]
        assert reached.max() >= NEARLY, f"code {code} under {scale}: only {reached.max()} of the radius"


def test_radii_under_the_largest_scale() -> None:
    x = np.concatenate([[FLOAT32_MAX, 2688, 2240.001], E2M1_TIES * np.float32(448), [0.0] * 6]).astype(np.float32)
    assert_within_radius(x)
    codes, _, radii = errors_and_radii(x)
    assert np.array_equal(np.isinf(radii), codes == 7)
    assert radii[codes == 6].max() == 448


@pytest.mark.parametrize("amax", [0.0, FLOAT32_TINY, 2.0**-126, 2.0**-11, 6 * 2.0**-9, 8.9999 * 2.0**-9])
def test_radii_under_the_smallest_scale(amax: float, rng: np.random.Generator) -> None:
    x = (rng.uniform(-1, 1, (200, GROUP_LENGTH)) * amax).astype(np.float32)
    x[:, 0] = amax
    assert (quantise_e2m1(x).scales == E4M3_MIN_SUBNORMAL).all()
    assert_within_radius(x)


@pytest.mark.parametrize(("steps", "radius"), [(1, 3.0), (2, 1.5), (3, 1.0), (8, 1.0), (100, 1.0)])
def test_radius_of_a_clipped_code(steps: int, radius: float) -> None:
    # In units of the scale, as derived: 3 · 2^-9 / s where that is more than 1.
    scale = np.float32(steps * E4M3_MIN_SUBNORMAL)
    radii = error_radius(QuantisedE2M1(np.uint8([7, 15] * 8), np.array([scale]), 1.0))
    expect_values(radii, np.full(16, radius * float(scale)), given=scale)


@given(x=GROUPS)
def test_radii_hold_for_any_values(x: np.ndarray) -> None:
    assert_within_radius(x)


@given(
    scale=st.sampled_from(BOUNDED),
    tops=hnp.arrays(np.float32, 16, elements=st.floats(-6.5, 6.5, width=32)),
    shift=st.integers(-3, 3),
)
def test_radii_hold_near_any_edge(scale: float, tops: np.ndarray, shift: int) -> None:
    x = np.rint(tops * 4) / np.float32(4) * np.float32(scale)  # whole quarters: every edge is one
    assert_within_radius((x.view(np.int32) + np.where(x != 0, shift, 0).astype(np.int32)).view(np.float32))


def test_radii_hold_for_random_bits_of_every_exponent(rng: np.random.Generator) -> None:
    exponents = rng.integers(-149, 128, (20_000, 1))
    assert_within_radius(np.ldexp(rng.uniform(-1, 1, (20_000, 16)), exponents).astype(np.float32))


def test_a_smaller_radius_would_not_hold() -> None:
    # Half the width of a cell, as if values sat in the middle: too little for the codes of 2, 4 and 6.
    x = groups_of_scale(1.0)
    codes, errors, _ = errors_and_radii(x)
    half_widths = np.array([0.25, 0.25, 0.25, 0.25, 0.375, 0.5, 0.75, 0.75])[codes & 7]
    assert set(codes[errors > half_widths] & 7) == {4, 6, 7}


@pytest.mark.parametrize("tensor_scale", [2.0, 0.5, np.inf])
def test_a_tensor_scale_is_refused(tensor_scale: float) -> None:
    with pytest.raises(ValueError, match=r"quantised: expected a tensor scale of 1 \(ScaleRule.GROUP\), got"):
        error_radius(QuantisedE2M1(np.zeros(16, np.uint8), np.ones(1, np.float32), tensor_scale))


def test_a_tensor_scale_of_one_is_none() -> None:
    x = np.linspace(-2688, 2688, 32, dtype=np.float32)
    two_level = quantise_e2m1(x, ScaleRule.TENSOR_AND_GROUP)
    assert two_level.tensor_scale == 1
    expect_values(error_radius(two_level), error_radius(quantise_e2m1(x)), given=x)


@pytest.mark.parametrize("shape", [(16,), (3, 32), (2, 3, 48), (0, 16), (4, 0)])
def test_radii_have_the_shape_of_the_codes(shape: tuple[int, ...]) -> None:
    radii = inspect.unwrap(error_radius)(quantise_e2m1(np.zeros(shape, np.float32)))
    assert radii.shape == shape and radii.dtype == np.float64
