"""What chapter 3 says in words about its numbers, held against the code that computes them."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from fp4kv import (
    attend,
    attention_weights,
    error_radius,
    needle_tolerance,
    output_error_bound,
    weight_error_bound,
)
from labkit import tensors
from labkit.formats import E2M1_TIES, E2M1_VALUES, QuantisedE2M1
from labkit.schemes import SCHEMES, Placement
from pictures import attention_error, broken_estimates, comparison, looseness, needles, other_formats, sinks, two_points

CHAPTER = (Path(__file__).resolve().parents[2] / "book" / "errors.md").read_text(encoding="utf-8")
WIDTH = 16
ROUNDED = 0.005  # the chapter rounds to two decimals, in its example to three
ABOUT_ONE = 0.25  # the estimate's relative deviation over a few dozen queries, where its assumptions hold


@pytest.fixture(scope="module")
def synthetic() -> dict[str, comparison.Comparison]:
    return broken_estimates.of_synthetic()


@pytest.fixture(scope="module")
def real() -> dict[str, comparison.Comparison]:
    return broken_estimates.of_real()


def example(codes: tuple[int, int]) -> QuantisedE2M1:
    """Return two tokens whose first channel has the given codes, under the scale 1; the rest is zero."""
    table = np.zeros((2, WIDTH), np.uint8)
    table[:, 0] = codes
    return QuantisedE2M1(table, np.ones((2, 1), np.float32), 1.0)


def first_channel(*values: float) -> np.ndarray:
    x = np.zeros((len(values), WIDTH))
    x[:, 0] = values
    return x


def test_example_by_hand_is_right():
    q = first_channel(4.0)  # √16: the logit is the key
    exact, decoded = first_channel(1.3, 0.7), first_channel(1.5, 0.5)
    assert attention_weights(q, exact) == pytest.approx(np.array([[0.646, 0.354]]), abs=ROUNDED / 10)
    assert attention_weights(q, decoded) == pytest.approx(np.array([[0.731, 0.269]]), abs=ROUNDED / 10)
    before, after = attend(q, exact, first_channel(2.4, 5.2))[0, 0], attend(q, decoded, first_channel(2, 6))[0, 0]
    assert (before, after, before - after) == pytest.approx((3.392, 3.076, 0.316), abs=ROUNDED / 10)


def test_bound_of_the_example_is_right_but_for_the_zeros_beside_it():
    radii = np.zeros((2, WIDTH))
    radii[:, 0] = error_radius(example((4, 7)))[:, 0]
    assert radii[:, 0] == pytest.approx([0.5, 1.0])
    moved = weight_error_bound(np.array([[0.25, 0.25]]))[0] * (abs(2 - 6) + radii.sum())
    assert moved == pytest.approx(0.684, abs=ROUNDED / 10)
    assert moved + 0.731 * 0.5 + 0.269 * 1 == pytest.approx(1.318, abs=ROUNDED / 10)
    assert output_error_bound(first_channel(4.0), example((3, 1)), example((4, 7)))[0] > 1.32, "more channels, no less"


def test_table_of_radii_is_the_codes():
    ends = np.concatenate([[-E2M1_TIES[0]], E2M1_TIES])
    radii = np.maximum(E2M1_VALUES[:7] - ends[:7], ends[1:] - E2M1_VALUES[:7])
    assert radii.tolist() == [0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1.0]
    row = re.search(r"^\| radius \$r\(c\)\$ \|(.*)\| \? \|$", CHAPTER, re.MULTILINE)[1]
    shown = [{"¼": 0.25, "½": 0.5, "1": 1.0}[cell.strip()] for cell in row.split("|")]
    assert shown == radii.tolist()


def test_largest_code_has_the_radii_of_the_lemma():
    scales = np.array([1, 2, 3, 512], np.float32) * 2.0**-9
    codes = np.full((4, 16), 7, np.uint8)
    radii = error_radius(QuantisedE2M1(codes, scales[:, None], 1.0))[:, 0] / scales
    assert radii.tolist() == [3, 1.5, 1, 1]


def test_dots_are_on_the_curves_and_no_point_is_above():
    weights = np.linspace(0, 1, 10_001)
    for epsilon in two_points.EPSILONS:
        gains = two_points.gain(weights, epsilon)
        assert gains.max() <= np.tanh(epsilon / 2)
        at_dot = two_points.gain(np.array(1 / (1 + np.exp(epsilon))), epsilon)
        assert at_dot == pytest.approx(np.tanh(epsilon / 2), rel=1e-12)


def test_guarantee_holds_and_loosens_with_the_context():
    table = {
        context: comparison.compare(*comparison.gaussian_cache(context, 64, 16, np.random.default_rng(context)))
        for context in (128, 2048)
    }
    assert all((entry.measured <= entry.guarantee).all() for entry in table.values())
    short, long = map(comparison.guarantee_ratio, table.values())
    assert 20 < short < long < 500


def test_steps_lead_from_the_guarantee_down_to_the_error():
    steps = looseness.steps(n_tokens=256)
    for above, below in itertools.pairwise(steps):
        assert above.keys > below.keys
        assert above.values >= below.values
    assert steps[2].values > steps[3].values


def test_diameter_counts_both_radii_and_no_point_twice():
    assert looseness.diameter(np.array([[0.0], [3.0]]), np.array([10.0, 1.0])) == pytest.approx(14)


def test_every_format_keeps_its_guarantee_and_its_estimate():
    for scheme, entry in other_formats.compare_all(n_tokens=256):
        assert (entry.measured <= entry.guarantee).all(), scheme.name
        if scheme.name != "INT2":  # a step as wide as the data: the error is not spread evenly
            assert comparison.estimate_ratio(entry) == pytest.approx(1, abs=ABOUT_ONE), scheme.name


@pytest.mark.parametrize("scheme", [s for s in SCHEMES[1:] if s.name != "E2M1, E4M3 per 16"], ids=lambda s: s.name)
def test_elements_lie_in_the_cells_of_their_format(scheme):
    x = np.random.default_rng(0).normal(size=(200, 64)).astype(np.float32)
    decoded = scheme.round_trip(x)
    below, above = other_formats.cells_of(scheme)(x, decoded)
    outwards = np.where(decoded == 0, np.abs(x), (x - decoded) * np.sign(decoded))
    slack = 1e-6 * np.abs(x).max()  # rounding of float32
    assert (outwards <= above + slack).all()
    assert (outwards >= -below - slack).all()


def test_estimate_holds_where_it_should_and_breaks_where_the_chapter_says(synthetic):
    ratio = {name: comparison.estimate_ratio(entry) for name, entry in synthetic.items()}
    assert ratio["independent Gaussian"] == pytest.approx(1, abs=0.1)
    assert ratio["values 99 % shared"] < 0.3
    assert ratio["one key channel × 30"] > 1.5
    assert ratio["whole numbers"] > 10
    assert ratio["heavy tails (Student's t, 3 degrees)"] > 1.2
    assert ratio["uniform"] < 0.95


def test_loud_channel_errs_less_than_its_code_says():
    assert broken_estimates.excess_in_loud_channel() > 4
    assert comparison.estimate_ratio(broken_estimates.of_layer(10)) > 1.3


def test_real_layer_0_breaks_the_estimate_because_its_tokens_repeat(real):
    assert comparison.estimate_ratio(real["real layer 0"]) < 0.75
    assert comparison.estimate_ratio(real["real layer 0, each token once"]) == pytest.approx(1, abs=ABOUT_ONE)
    tokens, values = tensors.load_tokens(), tensors.load_values(0)
    _, first, inverse = np.unique(tokens, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(values, values[first][inverse])


def test_guarantee_holds_on_every_real_query_and_says_nothing_about_weights(real, synthetic):
    assert all((entry.measured <= entry.guarantee).all() for entry in {**real, **synthetic}.values())
    assert min(map(broken_estimates.weight_bound, tensors.LAYERS[1:])) > 0.95


def test_real_keys_cost_more_than_real_values_and_gaussian_ones_do_not():
    errors = attention_error.median_errors(
        [attention_error.sweep(attention_error.real_heads(layer)) for layer in tensors.LAYERS]
    )
    gaussian = attention_error.median_errors([attention_error.sweep(attention_error.gaussian_heads())])
    for scheme in SCHEMES[1:]:
        keys, values = (errors[scheme.name, placement] for placement in (Placement.KEYS, Placement.VALUES))
        assert keys > 1.5 * values, scheme.name
        ratio = gaussian[scheme.name, Placement.KEYS] / gaussian[scheme.name, Placement.VALUES]
        assert ratio == pytest.approx(1, abs=0.15), scheme.name
    assert errors["FP8, UE8M0 per 32", Placement.KEYS] > errors["INT6", Placement.KEYS]


def test_sinks_are_where_the_chapter_says():
    weights = sinks.weight_on_first()
    assert weights[18] > 0.5
    assert weights[23] > 0.5
    assert weights[0] < 2 * sinks.even_weight()
    assert sinks.length_of_first(23)[1] < 0.2


def test_needles_are_found_as_the_chapter_says():
    shares = needles.over_margins()
    assert shares["FP16"][-1] == 1
    assert shares["E2M1, E4M3 per 16"][1] > 0.9
    assert shares["MXFP4"][1] < 0.6
    for share in shares.values():
        assert share == sorted(share)
    assert needle_tolerance(32_768, needles.MARGIN_OVER_CONTEXTS, 0.5) == 0


def test_answers_of_the_exercises_are_right():
    assert np.tanh(np.log(3) / 2) == pytest.approx(0.5)
    assert needle_tolerance(4096, 12.0, 0.5) == pytest.approx(1.84, abs=ROUNDED)
    assert needle_tolerance(131_072, 12.0, 0.5) == pytest.approx(0.11, abs=ROUNDED)
