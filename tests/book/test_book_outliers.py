"""Chapter 4 says what is so: each number and each comparison in its text that no cell computes, asked again."""

import re
from pathlib import Path
from types import SimpleNamespace

import fp4kv
import numpy as np
import pytest
from labkit.candidates import candidates, what_it_reads
from labkit.formats import E2M1_MAX, E4M3_MAX, E4M3_MIN_NORMAL, Cached
from pictures import growing, remedies

CHAPTER = (Path(__file__).resolve().parents[2] / "book" / "outliers.md").read_text(encoding="utf-8")
UNIT = 2.0**-24  # half an ulp of float32, relative: what one rounding may change
SPREAD = 3  # standard deviations that a mean quoted from one draw of a hundred may be off


def shown(name: str) -> str:
    """Return the code cell of the chapter that defines a function."""
    return next(
        cell for cell in re.findall(r"```\{code-cell\}[^\n]*\n(.*?)```", CHAPTER, re.S) if f"def {name}(" in cell
    )


@pytest.fixture(scope="module")
def siblings():
    names = {"np": np, "dequantise": fp4kv.dequantise, "quantise_e2m1": fp4kv.quantise_e2m1, "Cached": Cached}
    for name in ("in_blocks", "centre_on_block_before"):
        exec(compile(shown(name), "outliers.md", "exec"), names)
    return SimpleNamespace(in_blocks=names["in_blocks"], before=names["centre_on_block_before"])


@pytest.fixture(scope="module")
def rows(siblings):
    found = remedies.measure(
        {remedies.ROTATED_INTEGERS: remedies.rotated_integers, remedies.BLOCK_BEFORE: siblings.before}
    )
    return {row.name: row for row in found}


def group_of(largest: float) -> np.ndarray:
    x = np.ones(16, np.float32)
    x[0] = largest
    return x


@pytest.mark.parametrize(("largest", "scale", "one"), [(100, 16, 0), (24, 4, 0), (23, 3.75, 1.875)])
def test_groups_by_hand_are_right(largest, scale, one):
    quantised = fp4kv.quantise_e2m1(group_of(largest))
    assert quantised.scales.tolist() == [scale]
    assert fp4kv.dequantise(quantised)[1:].tolist() == [one] * 15
    assert f"| {largest} | {scale} |" in CHAPTER


def test_hundred_comes_back_as_96():
    assert fp4kv.dequantise(fp4kv.quantise_e2m1(group_of(100)))[0] == 96


def test_flush_line_is_a_quarter_of_the_scale_to_the_last_bit():
    amax = np.geomspace(E2M1_MAX * E4M3_MIN_NORMAL, E2M1_MAX * E4M3_MAX, 20_011, dtype=np.float32)
    groups = np.repeat(amax[:, None], 16, axis=1)
    line = fp4kv.quantise_e2m1(groups).scales[:, 0] / 4
    groups[:, 1], groups[:, 2] = line, np.nextafter(line, np.float32(np.inf))
    decoded = fp4kv.dequantise(fp4kv.quantise_e2m1(groups))
    assert not decoded[:, 1].any()
    assert decoded[:, 2].all()


def test_flush_line_stays_within_the_theorem_and_reaches_its_lower_end():
    ties = np.float32(6 * 1.0625) * 2.0 ** np.arange(-6, 8).astype(np.float32)
    amax = np.concatenate([np.geomspace(6 * 2.0**-6, 6 * 448, 200_003, dtype=np.float32), ties, ties * (1 + 2 * UNIT)])
    ratio = fp4kv.quantise_e2m1(np.repeat(amax[:, None], 16, axis=1)).scales[:, 0] * 6 / amax.astype(np.float64)
    assert ratio.min() == 16 / 17
    assert 18 / 17 * (1 - 4 * UNIT) < ratio.max() < 18 / 17


def test_ones_vanish_from_23_25_on():
    below = np.nextafter(np.float32(23.25), np.float32(0))
    assert fp4kv.dequantise(fp4kv.quantise_e2m1(group_of(23.25)))[1] == 0
    assert fp4kv.dequantise(fp4kv.quantise_e2m1(group_of(below)))[1] > 0


def test_error_of_the_others_follows_the_derived_line_up_to_the_plateau():
    errors = growing.ordinary_errors()["one scale per group"]
    line = growing.SIZES / growing.FULL_ERROR_SIZE
    assert round(growing.FULL_ERROR_SIZE, 1) == 41.6
    middle = (growing.SIZES >= 11) & (growing.SIZES <= 32)
    # The step is a twelfth of amax only to the rounding of the scale, at most a seventeenth.
    assert np.abs(errors[middle] / line[middle] - 1).max() < 1 / 17
    assert errors.max() <= 1
    assert errors[growing.SIZES >= 128].min() > 0.9999


def test_outliers_of_the_real_model_are_where_the_caption_says():
    keys, values = growing.real_reach("keys"), growing.real_reach("values")
    with_outlier = [layer.layer for layer in keys if (layer.ratios > growing.THRESHOLD).any()]
    assert with_outlier == [5, 10, 18, 23, 29]
    assert [layer.layer for layer in values if (layer.ratios > growing.THRESHOLD).any()] == [0]


def test_classroom_measurement_is_reproduced():
    published = {"token-2": 2.51, "token-4": 1.21, "channel-2": 0.50, "channel-4": 0.10}
    for name, draws in growing.axis_choice().items():
        assert abs(published[name] - draws.mean()) < SPREAD * draws.std(), name


def test_range_and_minimum_of_128_gaussian_values_are_as_quoted():
    x = np.random.default_rng(0).normal(size=(20_000, 128))
    assert round(np.ptp(x, axis=1).mean(), 1) == 5.2
    assert round(x.min(axis=1).mean(), 1) == -2.6
    assert round(5.2 / 3 / np.sqrt(12), 2) == 0.50
    assert round(5.2 / 15 / np.sqrt(12), 2) == 0.10
    assert round(np.sqrt(1 + 2.6**2), 1) == 2.8


@pytest.mark.parametrize("bits", [2, 3, 4])
def test_blocks_shown_are_those_of_the_candidates(siblings, bits):
    x = remedies.loud_channel(4)
    candidate = candidates(x, remedies.PARTS)[f"INT{bits} per channel, affine blocks of 32"]
    cached = siblings.in_blocks(x, bits)
    assert np.array_equal(cached.decoded, candidate.decoded)
    assert cached.bits_per_element == candidate.bits_per_element


def test_centring_on_the_block_before_looks_at_no_later_token(siblings):
    x = remedies.loud_channel(4)
    changed = x.copy()
    changed[200:] += 5
    assert np.array_equal(siblings.before(x).decoded[:200], siblings.before(changed).decoded[:200])
    assert not np.array_equal(siblings.before(x).decoded[256:], siblings.before(changed).decoded[256:])


def test_split_stores_what_the_formula_says():
    x = remedies.loud_channel(50)
    n_tokens, width = x.shape
    for bits in (3, 4, 8):
        formula = bits + 32 / width + (16 - bits) / width
        stored = fp4kv.split_outliers(x, bits, threshold=3.0).bits_per_element
        assert stored == pytest.approx(formula + 1 / n_tokens, rel=1e-12)


def test_five_bits_hold_two_outlier_channels():
    assert 4 + 32 / 64 + 12 / 64 * 2 <= 5 < 4 + 32 / 64 + 12 / 64 * 3


def test_rotated_group_is_as_quoted():
    rotated = fp4kv.rotate_hadamard(group_of(100))
    quantised = fp4kv.quantise_e2m1(rotated)
    assert rotated.tolist() == [28.75] + [24.75] * 15
    assert quantised.scales.tolist() == [5]
    assert fp4kv.rotate_hadamard(fp4kv.dequantise(quantised)).tolist() == [82.5] + [2.5] * 15


def test_four_over_six_keeps_the_exact_scale():
    x = np.zeros(16, np.float32)
    x[:4] = 10, 20, 30, 40
    six, four = fp4kv.quantise_e2m1(x), fp4kv.scale_four_over_six(x)
    assert six.scales.tolist() == [6.5]
    assert fp4kv.dequantise(six)[:4].tolist() == [9.75, 19.5, 26, 39]
    assert round(float(((fp4kv.dequantise(six) - x) ** 2).sum()), 1) == 17.3
    assert four.scales.tolist() == [10]
    assert np.array_equal(fp4kv.dequantise(four), x)


def test_scale_at_its_floor_flushes_up_to_2_to_the_minus_11():
    line = np.float32(2.0**-11)
    faint = np.repeat(np.float32([[line], [np.nextafter(line, np.float32(1))]]), 16, axis=1)
    decoded = fp4kv.dequantise(fp4kv.quantise_e2m1(faint))
    assert not decoded[0].any()
    assert (decoded[1] == 2.0**-10).all()


def test_every_scheme_of_the_labs_stands_in_the_table(rows):
    names = set(candidates(remedies.loud_channel(50), remedies.PARTS))
    assert names | {remedies.ROTATED_INTEGERS, remedies.BLOCK_BEFORE} == set(rows)
    assert all(rows[name].reads is what_it_reads(name) for name in names)


def test_bits_in_the_table_are_those_of_the_median_real_head(rows):
    stored = {}
    for layer in growing.real_reach("keys"):
        for head in range(3):
            keys = remedies.tensors.load_keys(layer.layer)[:, head]
            for name, cached in candidates(keys, remedies.PARTS).items():
                stored.setdefault(name, []).append(cached.bits_per_element)
    assert {name: np.median(bits) for name, bits in stored.items()} == pytest.approx(
        {name: rows[name].bits_per_element for name in stored}
    )


def test_confining_a_loud_channel_beats_spreading_it_and_its_own_scale_beats_both(rows):
    loud = {name: row.errors["loud × 50"] for name, row in rows.items()}
    own = max(loud["INT4 per token, outliers in FP16"], loud["INT4 per channel, affine blocks of 32"])
    assert own < loud["E2M1, E4M3 per 16"] < min(loud["E2M1, rotated"], loud[remedies.ROTATED_INTEGERS])
    assert loud[remedies.ROTATED_INTEGERS] < loud["INT4, one scale per token"] / 2


def test_fp8_does_not_notice_a_loud_channel(rows):
    errors = rows["FP8, UE8M0 per 32"].errors
    assert errors["loud × 50"] == pytest.approx(errors["loud × 4"], rel=0.02)


def test_caption_of_the_errors_by_bits_holds(rows):
    for column in ("keys", "output"):
        at_once = [row for row in rows.values() if row.reads in (remedies.Reads.TOKEN, remedies.Reads.EARLIER)]
        best = min((row for row in at_once if row.bits_per_element <= 6), key=lambda row: row.errors[column])
        assert best.name.startswith("E2M1")
        for bits in (4, 5):
            allowed = [row for row in rows.values() if row.bits_per_element <= bits]
            waiting = rows[f"INT{bits - 1} per channel, affine blocks of 32"]
            assert waiting.errors[column] == min(row.errors[column] for row in allowed)


def test_keys_do_the_damage_and_centring_helps_most_at_four_and_a_half_bits(rows):
    plain = rows["E2M1, E4M3 per 16"].errors
    assert plain["output, keys only"] > 0.9 * plain["output"]
    allowed = {name: row.errors["output"] for name, row in rows.items() if row.bits_per_element <= 4.5}
    assert min(allowed, key=allowed.get) == remedies.BLOCK_BEFORE


def test_channel_error_and_output_error_disagree_as_the_text_says(rows):
    plain, rotated = rows["E2M1, E4M3 per 16"].errors, rows["E2M1, rotated"].errors
    along = rows["E2M1 per channel, blocks of 16"].errors
    assert rotated["keys"] > plain["keys"]
    assert rotated["output, keys only"] < plain["output, keys only"]
    assert along["keys"] < plain["keys"]
    assert along["output, keys only"] > plain["output, keys only"]


def test_stars_mark_what_nothing_of_as_few_bits_beats(rows):
    table = list(rows.values())
    for column in remedies.COLUMNS:
        best = remedies.best_so_far(table, column)
        for row in table:
            rivals = [other.errors[column] for other in table if other.bits_per_element <= row.bits_per_element]
            assert (row.name in best) == (row.errors[column] == min(rivals))
