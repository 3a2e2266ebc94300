"""Caches that went wrong: each can be diagnosed and repaired, whatever the seed, and no easy rule does it."""

from collections.abc import Callable
from typing import Any

import fp4kv
import numpy as np
import pytest
from labkit.expect import Mismatch, expect_values
from labkit.formats import E4M3_MIN_SUBNORMAL, QuantisedE2M1
from labkit.suspects.lab04 import REPAIRED_ERROR, Case, Cause, Diagnosis, Repaired, make_case, restore

CAUSES = list(Cause)
SEEDS, SOME_SEEDS = range(300), range(100)


def case_of(cause: Cause, seed: int) -> Case:
    """The case of a seed."""
    return make_case(cause, np.random.default_rng(seed))


def sound_scales(x: np.ndarray) -> np.ndarray:
    """The scale that each element should have."""
    return np.repeat(fp4kv.quantise_e2m1(x).scales, 16, axis=1)


def columns(group: int) -> slice:
    """The channels of a group."""
    return slice(16 * group, 16 * group + 16)


def by_group(x: np.ndarray) -> np.ndarray:
    """The channels of each group on an axis of their own: (T, groups, 16)."""
    return x.reshape(len(x), -1, 16)


def diagnose(x: np.ndarray, decoded: np.ndarray, scales: np.ndarray) -> Diagnosis:
    """The reference: look at the scales first, then at how small, then at how loud."""
    if np.ptp(by_group(scales), axis=2).any():
        return Diagnosis(Cause.WRONG_AXIS, None, None)
    is_unsound = by_group(scales != sound_scales(x)).any(axis=(0, 2))
    if is_unsound.any():
        return Diagnosis(Cause.STALE_AMAX, int(np.argmax(is_unsound)), None)
    typical = np.median(np.abs(x), axis=0).reshape(-1, 16)
    group = int(np.argmin(np.median(typical, axis=1)))
    if np.median(typical[group]) < E4M3_MIN_SUBNORMAL / 2:  # half of the values are below the smallest code
        return Diagnosis(Cause.SCALE_FLOOR, group, None)
    loudness = typical / np.median(typical, axis=1, keepdims=True)
    channel = int(np.argmax(loudness))
    return Diagnosis(Cause.OUTLIER, channel // 16, channel)


def repair(x: np.ndarray) -> Repaired:
    """The reference: make all channels equally large by powers of two, then quantise."""
    size = np.sqrt(np.square(x, dtype=np.float64).mean(axis=0))
    return with_exponents(x, np.rint(np.log2(size)))


def with_exponents(x: np.ndarray, exponents: np.ndarray) -> Repaired:
    """Sound scales after a power of two per channel."""
    whole = exponents.astype(np.int32)
    return Repaired(fp4kv.quantise_e2m1(np.ldexp(x, -whole)), whole.astype(np.int8))


def error_of(x: np.ndarray, repaired: Repaired) -> float:
    """The mean channel error of a repaired cache."""
    return float(fp4kv.channel_error(x, restore(repaired, x.shape)).mean())


@pytest.mark.parametrize("cause", CAUSES)
def test_every_case_is_named_in_full_by_the_reference(cause: Cause) -> None:
    for seed in SEEDS:
        case = case_of(cause, seed)
        assert diagnose(case.x, case.decoded, case.scales) == case.truth, seed


@pytest.mark.parametrize("cause", CAUSES)
def test_cases_hold_what_a_cache_could_hold(cause: Cause) -> None:
    for seed in SOME_SEEDS:
        x, decoded, scales, _ = case_of(cause, seed)
        assert x.shape == decoded.shape == scales.shape and x.shape in {(128, 128), (192, 128)}, seed
        assert x.dtype == decoded.dtype == scales.dtype == np.float32 and np.isfinite(x).all(), seed
        expect_values(fp4kv.round_to_e4m3(scales), scales, given=seed)
        expect_values(fp4kv.decode_e2m1(fp4kv.encode_e2m1(x / scales)) * scales, decoded, given=seed)
        assert np.abs(x).max() < 6 * 448, "scales end at 448: that would be another cause"


def test_cases_have_the_labels_that_their_cause_has() -> None:
    labels = {cause: [case_of(cause, seed).truth[1:] for seed in SOME_SEEDS] for cause in CAUSES}
    assert set(labels[Cause.WRONG_AXIS]) == {(None, None)}
    for cause in (Cause.STALE_AMAX, Cause.SCALE_FLOOR):
        assert set(labels[cause]) == {(group, None) for group in range(8)}
    assert all(channel // 16 == group for group, channel in labels[Cause.OUTLIER])
    assert len(set(labels[Cause.OUTLIER])) > 50


def test_stale_scales_are_sound_at_first_and_then_stand_still_in_one_group() -> None:
    for seed in SOME_SEEDS:
        x, _, scales, truth = case_of(Cause.STALE_AMAX, seed)
        sound, inside = sound_scales(x), columns(truth.group)
        assert np.array_equal(np.delete(scales, inside, axis=1), np.delete(sound, inside, axis=1)), seed
        stale = scales[:, inside][:, 0]
        assert np.array_equal(stale[:8], sound[:8, inside][:, 0]) and not np.ptp(stale[16:]), seed
        assert (x[-32:, inside] ** 2).mean() > 4 * (6 * stale[-1] / 3) ** 2, seed  # beyond what the scale reaches


def test_scales_along_the_wrong_axis_are_sound_for_16_tokens_of_a_channel() -> None:
    for seed in SOME_SEEDS:
        x, decoded, scales, _ = case_of(Cause.WRONG_AXIS, seed)
        expect_values(scales, np.repeat(fp4kv.quantise_e2m1(x.T).scales, 16, axis=1).T, given=seed)
        sizes = np.linalg.norm(x, axis=1)
        by_token = (np.linalg.norm(decoded - x, axis=1) / np.maximum(sizes, 1e-30))[sizes > 0]
        assert by_token.mean() > 0.4 > 0.1 > fp4kv.channel_error(x, decoded).mean(), seed


def test_an_outlier_is_20_to_80_times_as_large_as_the_others_of_its_group_under_sound_scales() -> None:
    for seed in SOME_SEEDS:
        x, _, scales, truth = case_of(Cause.OUTLIER, seed)
        expect_values(scales, sound_scales(x), given=seed)
        sizes = np.sqrt((x[:, columns(truth.group)] ** 2).mean(axis=0))
        times = sizes[truth.channel % 16] / np.median(sizes)
        assert 20 / 1.3 < times < 80 * 1.3, seed  # of 128 normal values, the size is known to 6 %: four of that


def test_at_the_floor_nothing_is_larger_than_a_code_or_two_under_sound_scales() -> None:
    for seed in SOME_SEEDS:
        x, _, scales, truth = case_of(Cause.SCALE_FLOOR, seed)
        expect_values(scales, sound_scales(x), given=seed)
        assert (scales[:, columns(truth.group)] == E4M3_MIN_SUBNORMAL).all(), seed
        assert np.abs(x[:, columns(truth.group)]).max() <= 1.2 * E4M3_MIN_SUBNORMAL, seed


def loudest_channel(case: Case) -> bool:
    """Whether the channel that reaches furthest is the one."""
    return int(np.abs(case.x).max(axis=0).argmax()) == case.truth.channel


def outlier_of_the_whole_tensor(case: Case) -> bool:
    """Whether the channel is alone beyond ten times the median channel."""
    return fp4kv.outlier_channels(case.x, 10.0).tolist() == [case.truth.channel]


def channel_with_the_largest_error(case: Case) -> bool:
    """Whether the worst channel lies in the group."""
    return int(fp4kv.channel_error(case.x, case.decoded).argmax()) // 16 == case.truth.group


def group_with_the_largest_error(case: Case) -> bool:
    """Whether the group has the largest squared error."""
    error = np.square(case.decoded - case.x, dtype=np.float64)
    return int(by_group(error).sum(axis=(0, 2)).argmax()) == case.truth.group


def group_with_the_largest_relative_error(case: Case) -> bool:
    """Whether the group has the largest squared error relative to its size."""
    error, size = np.square(case.decoded - case.x, dtype=np.float64), np.square(case.x, dtype=np.float64)
    shares = by_group(error).sum(axis=(0, 2)) / by_group(size).sum(axis=(0, 2))
    return int(shares.argmax()) == case.truth.group


def group_that_grows_most(case: Case) -> bool:
    """Whether the group's late tokens are larger than its early ones by most."""
    size = np.median(np.abs(by_group(case.x)), axis=2)
    return int((size[-32:].mean(axis=0) / size[:16].mean(axis=0)).argmax()) == case.truth.group


def group_whose_scales_change_least(case: Case) -> bool:
    """Whether the group has the fewest different scales."""
    scales = by_group(case.scales)[:, :, 0]
    return int(np.argmin([np.unique(one).size for one in scales.T])) == case.truth.group


EASY_RULES: list[tuple[Callable[[Case], bool], Cause, float]] = [
    (loudest_channel, Cause.OUTLIER, 0.1),
    (outlier_of_the_whole_tensor, Cause.OUTLIER, 0.1),
    (channel_with_the_largest_error, Cause.OUTLIER, 0.3),
    (channel_with_the_largest_error, Cause.STALE_AMAX, 0.1),
    (group_with_the_largest_error, Cause.OUTLIER, 0.1),
    (group_with_the_largest_error, Cause.STALE_AMAX, 0.1),
    (group_with_the_largest_error, Cause.SCALE_FLOOR, 0.1),
    (group_with_the_largest_relative_error, Cause.OUTLIER, 0.1),
    (group_that_grows_most, Cause.STALE_AMAX, 0.7),
    (group_whose_scales_change_least, Cause.STALE_AMAX, 0.1),
]


@pytest.mark.parametrize(("rule", "cause", "most"), EASY_RULES)
def test_easy_rules_name_the_wrong_place(rule: Callable[[Case], bool], cause: Cause, most: float) -> None:
    right = np.mean([rule(case_of(cause, seed)) for seed in SOME_SEEDS])
    assert right <= most, right


def has_scales_at_the_floor(case: Case) -> bool:
    """Whether a scale is the smallest there is."""
    return bool((case.scales == E4M3_MIN_SUBNORMAL).any())


def has_a_small_group(case: Case) -> bool:
    """Whether a group needs scales below the smallest normal one."""
    return bool((np.median(np.abs(by_group(case.x)), axis=(0, 2)) < 2.0**-6).any())


def has_clipped_values(case: Case) -> bool:
    """Whether an element comes back smaller by more than a normal scale that was rounded down explains."""
    return bool((np.abs(case.x) > 1.07 * 6 * case.scales).any())


def has_a_loud_channel(case: Case) -> bool:
    """Whether a channel is more than four times as loud as the median one."""
    return bool(fp4kv.outlier_channels(case.x, 4.0).size)


def has_loud_tokens(case: Case) -> bool:
    """Whether a token is more than ten times as loud as the median one."""
    size = np.abs(case.x).max(axis=1)
    return bool((size > 10 * np.median(size)).any())


@pytest.mark.parametrize(
    "sign", [has_scales_at_the_floor, has_a_small_group, has_clipped_values, has_a_loud_channel, has_loud_tokens]
)
def test_easy_signs_of_a_cause_are_in_cases_of_every_cause(sign: Callable[[Case], bool]) -> None:
    for cause in CAUSES:
        assert np.mean([sign(case_of(cause, seed)) for seed in SOME_SEEDS]) > 0.8, cause


@pytest.mark.parametrize("cause", CAUSES)
def test_evening_the_channels_out_repairs_every_case(cause: Cause) -> None:
    for seed in SEEDS:
        x = case_of(cause, seed).x
        assert error_of(x, repair(x)) < 0.85 * REPAIRED_ERROR, seed


def only_the_cause(case: Case) -> np.ndarray:
    """Exponents for the outlier, or for the group at the floor, and no others."""
    exponents = np.zeros(case.x.shape[1])
    if case.truth.cause is Cause.OUTLIER:
        size = np.median(np.abs(case.x[:, columns(case.truth.group)]), axis=0)
        exponents[case.truth.channel] = np.rint(np.log2(size[case.truth.channel % 16] / np.median(size)))
    if case.truth.cause is Cause.SCALE_FLOOR:
        exponents[columns(case.truth.group)] = -9
    return exponents


@pytest.mark.parametrize("cause", CAUSES)
def test_repairing_the_cause_alone_is_enough(cause: Cause) -> None:
    for seed in SEEDS:
        case = case_of(cause, seed)
        assert error_of(case.x, with_exponents(case.x, only_the_cause(case))) < 0.93 * REPAIRED_ERROR, seed


@pytest.mark.parametrize("cause", [Cause.OUTLIER, Cause.SCALE_FLOOR])
def test_sound_scales_alone_are_not_enough(cause: Cause) -> None:
    for seed in SEEDS:
        x = case_of(cause, seed).x
        assert error_of(x, with_exponents(x, np.zeros(x.shape[1]))) > 1.07 * REPAIRED_ERROR, seed


@pytest.mark.parametrize("cause", [Cause.STALE_AMAX, Cause.OUTLIER, Cause.SCALE_FLOOR])
def test_a_broken_cache_is_over_the_limit(cause: Cause) -> None:
    for seed in SEEDS:
        case = case_of(cause, seed)
        assert fp4kv.channel_error(case.x, case.decoded).mean() > 1.07 * REPAIRED_ERROR, seed


def test_one_exponent_for_all_channels_does_not_repair_an_outlier() -> None:
    for seed in SOME_SEEDS:
        x = case_of(Cause.OUTLIER, seed).x
        assert min(error_of(x, with_exponents(x, np.full(128, e))) for e in (-3, -2, -1, 1, 2)) > REPAIRED_ERROR, seed


def test_cases_depend_on_the_seed_alone() -> None:
    for cause in CAUSES:
        one, same, other = case_of(cause, 1), case_of(cause, 1), case_of(cause, 2)
        assert np.array_equal(one.x, same.x) and np.array_equal(one.scales, same.scales) and one.truth == same.truth
        assert one.x.shape != other.x.shape or not np.array_equal(one.x, other.x)


X = np.random.default_rng(0).normal(size=(4, 32)).astype(np.float32)
SOUND = repair(X)


def test_restoring_is_dequantising_times_powers_of_two() -> None:
    codes = np.tile(np.arange(16, dtype=np.uint8), (2, 2))
    scales = np.float32([[1, 448], [2.0**-9, 0]])
    exponents = np.arange(-16, 16).astype(np.int8)
    exponents[[0, 31]] = -128, 127
    got = restore(Repaired(QuantisedE2M1(codes, scales, 1.0), exponents), (2, 32))
    values = fp4kv.decode_e2m1(codes).astype(np.float64) * np.repeat(scales, 16, axis=1)
    expect_values(got, values * 2.0 ** exponents.astype(np.float64), given="all codes")


def test_what_is_right_in_another_type_is_accepted() -> None:
    (codes, scales, _), exponents = SOUND
    expected = restore(SOUND, X.shape)
    for other in (
        ((codes, scales.astype(np.float64), 1), exponents.astype(np.int64)),
        ((codes, scales.astype(np.float16), np.float32(1)), exponents.tolist()),
    ):
        expect_values(restore(other, X.shape), expected, given="wider types")


def changed(**parts: Any) -> Any:
    """The sound answer with some parts replaced."""
    return Repaired(SOUND.quantised._replace(**parts), SOUND.exponents)


def with_one(array: np.ndarray, value: Any) -> np.ndarray:
    """A copy with another value in one place."""
    copy = array.copy()
    copy[..., -1] = value
    return copy


CODES, SCALES, _ = SOUND.quantised
WRONG = {
    "nothing": None,
    "an array": X,
    "one part": (SOUND.quantised,),
    "three parts": (*SOUND, 1),
    "a list of two": [SOUND.quantised, SOUND.exponents],
    "codes alone": Repaired(CODES, SOUND.exponents),
    "text": ("ab", "cd"),
    "codes of 16": changed(codes=with_one(CODES, 16)),
    "codes as floats": changed(codes=CODES.astype(np.float32)),
    "packed codes": changed(codes=fp4kv.pack_nibbles(CODES)),
    "codes of one token": changed(codes=CODES[:1]),
    "codes as objects": changed(codes=CODES.astype(object)),
    "scales between E4M3 values": changed(scales=with_one(SCALES, 1.01)),
    "scales below the smallest": changed(scales=with_one(SCALES, 2.0**-10)),
    "scales beyond 448": changed(scales=with_one(SCALES, 512)),
    "negative scales": changed(scales=with_one(SCALES, -1)),
    "NaN as scale": changed(scales=with_one(SCALES, np.nan)),
    "infinity as scale": changed(scales=with_one(SCALES, np.inf)),
    "a scale per element": changed(scales=np.repeat(SCALES, 16, axis=1)),
    "a scale per token": changed(scales=SCALES[:, :1]),
    "whole scales": changed(scales=np.ones(SCALES.shape, np.int64)),
    "complex scales": changed(scales=SCALES.astype(complex)),
    "a tensor scale": changed(tensor_scale=0.5),
    "NaN as tensor scale": changed(tensor_scale=float("nan")),
    "tensor scales": changed(tensor_scale=np.ones(4)),
    "no tensor scale": changed(tensor_scale=None),
    "a true tensor scale": changed(tensor_scale=True),
    "exponents beyond int8": Repaired(SOUND.quantised, np.full(32, 128)),
    "huge exponents": Repaired(SOUND.quantised, np.full(32, 2**64 - 1, np.uint64)),
    "exponents as floats": Repaired(SOUND.quantised, np.full(32, 0.5)),
    "an exponent per element": Repaired(SOUND.quantised, np.zeros((4, 32), np.int8)),
    "an exponent per token": Repaired(SOUND.quantised, np.zeros(4, np.int8)),
    "one exponent": Repaired(SOUND.quantised, np.int8(1)),
    "no exponents": Repaired(SOUND.quantised, None),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_what_could_not_be_stored_is_a_mismatch(wrong: Any) -> None:
    with pytest.raises(Mismatch):
        restore(wrong, X.shape)


@pytest.mark.parametrize(
    ("wrong", "expected", "got"),
    [
        ("codes as floats", "codes of type uint8 of shape (4, 32)", "float32 of shape (4, 32)"),
        ("scales between E4M3 values", "scales that are E4M3 values of at least 0", "1.01"),
        ("a tensor scale", "a tensor_scale of 1", "0.5"),
        ("exponents beyond int8", "exponents from -128 to 127", "128 to 128"),
    ],
)
def test_the_message_says_what_was_expected_and_what_came(wrong: str, expected: str, got: str) -> None:
    with pytest.raises(Mismatch) as raised:
        restore(WRONG[wrong], X.shape)
    assert raised.value.expected == expected and raised.value.got.startswith(got), raised.value
