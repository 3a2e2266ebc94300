"""What counts as an answer, what a student reads when it differs, and that nothing passes by claiming to be equal."""

from typing import Any

import numpy as np
import pytest
from labkit.expect import (
    Mismatch,
    Raised,
    expect_bytes,
    expect_close,
    expect_codes,
    expect_dtype_and_shape,
    expect_raises,
    expect_values,
    plain_array,
    show_byte,
    show_code,
    show_given,
)

X = np.float32([0.25, 0.75, 2.5])


class EqualsEverything:
    """An object that says yes to every comparison."""

    shape, dtype, size, ndim = (3,), np.dtype(np.uint8), 3, 1

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = None

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return np.uint8([0, 2, 4])


class LyingNumber(np.float64):
    """A number of another class."""

    def __ne__(self, other: object) -> bool:
        return False


class LyingArray(np.ndarray):
    """An array of another class, whose comparisons may be its own."""

    def __ne__(self, other: object) -> Any:
        return np.zeros(3, bool)


def lines_of(call: Any) -> list[str]:
    """The lines of the mismatch that a call raises."""
    with pytest.raises(Mismatch) as caught:
        call()
    return caught.value.lines()


def test_equal_codes_pass() -> None:
    expect_codes(np.uint8([0, 2, 4]), np.uint8([0, 2, 4]), given=X)


def test_codes_show_the_first_difference_with_its_bits() -> None:
    assert lines_of(lambda: expect_codes(np.uint8([0, 3, 5]), np.uint8([0, 2, 4]), given=X, hint="ties")) == [
        "given    0.75",
        "expected code 2 = 0b0_01_0 at index 1",
        "got      code 3 = 0b0_01_1",
        "hint     ties",
    ]


def test_bytes_show_their_halves() -> None:
    codes = np.uint8([2, 7])
    assert lines_of(lambda: expect_bytes(np.uint8([0x27]), np.uint8([0x72]), given=codes)) == [
        "given    [2, 7]",
        "expected byte 0x72 = 0b0111_0010 at index 0",
        "got      byte 0x27 = 0b0010_0111",
    ]


def test_a_difference_in_a_matrix_is_placed() -> None:
    got, expected = np.float32([[1, 2], [3, 5]]), np.float32([[1, 2], [3, 4]])
    assert lines_of(lambda: expect_values(got, expected, given=expected)) == [
        "given    4.0",
        "expected 4.0 at index (1, 1)",
        "got      5.0",
    ]


def test_neighbouring_floats_are_shown_apart() -> None:
    above = np.nextafter(np.float32(0.25), np.float32(1))
    lines = lines_of(lambda: expect_values(np.array([above]), np.float32([0.25]), given=np.array([above])))
    assert lines == ["given    0.25000003", "expected 0.25 at index 0", "got      0.25000003"]


LIES = [EqualsEverything(), np.uint8([0, 0, 0]).view(LyingArray), LyingNumber(0), None, "0 2 4", {0, 2, 4}]


@pytest.mark.parametrize("lie", LIES)
def test_objects_that_are_no_plain_data_are_mismatches(lie: Any) -> None:
    lines = lines_of(lambda: expect_codes(lie, np.uint8([0, 2, 4]), given=X))
    assert lines[1:] == ["expected a NumPy array of numbers", f"got      an object of type {type(lie).__name__}"]


@pytest.mark.parametrize("lie", [[0, EqualsEverything()], np.array([0, 2, 4], object), np.array(["0"]), [[1, 2], [3]]])
def test_arrays_and_lists_of_other_things_are_mismatches(lie: Any) -> None:
    with pytest.raises(Mismatch):
        expect_codes(lie, np.uint8([0, 2, 4]), given=X)


@pytest.mark.parametrize("number", [10**400, [10**400], [10**400, 1.0], [True, 2**64]])
def test_whole_numbers_that_no_array_holds_are_mismatches(number: Any) -> None:
    with pytest.raises(Mismatch, match="a whole number beyond 64 bits"):
        plain_array(number)


def test_the_dtype_comes_before_the_shape_and_the_shape_before_the_values() -> None:
    expected = np.uint8([0, 2, 4])
    assert lines_of(lambda: expect_codes(np.int64([1, 1]), expected, given=X))[1:] == [
        "expected dtype uint8",
        "got      dtype int64",
    ]
    assert lines_of(lambda: expect_codes(np.uint8([1, 1]), expected, given=X))[1:] == [
        "expected shape (3,)",
        "got      shape (2,)",
    ]


def test_numbers_and_lists_have_no_width() -> None:
    expect_values([1, 2], np.int32([1, 2]), given="two")
    expect_values(2.5, np.float32(2.5), given="one")
    with pytest.raises(Mismatch, match="expected dtype int32"):
        expect_values([1.0, 2.0], np.int32([1, 2]), given="two")


def test_any_width_forgives_the_width_and_not_the_kind() -> None:
    expect_values(np.int64([1]), np.int16([1]), given=1, any_width=True)
    with pytest.raises(Mismatch, match="expected dtype int16"):
        expect_values(np.int64([1]), np.int16([1]), given=1)
    with pytest.raises(Mismatch, match="got      dtype float64"):
        expect_values(np.float64([1]), np.int16([1]), given=1, any_width=True)


def test_signs_of_zeros_count_where_asked() -> None:
    expect_values(np.float32([-0.0]), np.float32([0.0]), given=0)
    with pytest.raises(Mismatch, match=r"expected 0\.0 at index 0\ngot      -0\.0"):
        expect_values(np.float32([-0.0]), np.float32([0.0]), given=0, signed_zeros=True)


def test_nan_equals_nan_and_nothing_else() -> None:
    expect_values(np.float32([np.nan]), np.float32([np.nan]), given=0)
    for got, expected in ((np.nan, 1), (1, np.nan)):
        with pytest.raises(Mismatch):
            expect_values(np.float32([got]), np.float32([expected]), given=0)


def test_close_holds_the_tolerance_of_each_element() -> None:
    expected = np.float64([1, 100])
    expect_close(np.float32([1.5, 99]), expected, [0.5, 1], given="two")
    assert lines_of(lambda: expect_close(np.float64([1.25, 98]), expected, [0.5, 1], given="two")) == [
        "given    two",
        "expected 100.0 ± 1.0 at index 1",
        "got      98.0",
    ]


@pytest.mark.parametrize("got", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_not_close(got: float) -> None:
    with pytest.raises(Mismatch):
        expect_close(np.array([got]), np.array([1.0]), 1e300, given=1)


def test_the_answer_that_is_compared_is_a_copy() -> None:
    got = np.uint8([0, 2, 4])
    copy = expect_dtype_and_shape(got, np.uint8([0, 2, 4]), given=X)
    got[:] = 7
    assert copy.tolist() == [0, 2, 4]


def raising(error: Exception) -> Any:
    """A call that raises."""

    def call() -> None:
        raise error

    return call


@pytest.mark.parametrize(
    "message", ["x: got nan at index (1, 4)", "index [1, 4] is NaN", "nan at 1, 4.", "x[1][4] is inf, 2 elements seen"]
)
def test_an_index_is_named_in_any_spelling(message: str) -> None:
    expect_raises(ValueError, raising(ValueError(message)), given=X, naming=(1, 4))


@pytest.mark.parametrize("message", ["NaN in x", "index (4, 1)", "index 14", "index 1.4", "float1 4x", "index (1, 40)"])
def test_another_index_is_a_mismatch(message: str) -> None:
    lines = lines_of(lambda: expect_raises(ValueError, raising(ValueError(message)), given="x", naming=(1, 4)))
    assert lines == ["given    x", "expected ValueError naming (1, 4)", f"got      ValueError: {message}"]


def test_an_error_that_was_expected_and_did_not_come() -> None:
    assert lines_of(lambda: expect_raises(ValueError, lambda: np.uint8([7]), given=np.inf)) == [
        "given    inf",
        "expected ValueError",
        "got      [7] and no error",
    ]


def test_another_error_is_left_alone() -> None:
    with pytest.raises(KeyError):
        expect_raises(ValueError, raising(KeyError("x")), given=X)


def test_an_error_from_a_kernel_counts_by_the_names_of_its_classes() -> None:
    theirs = Raised(("MyError", "ValueError", "Exception"), "bad value at 3")
    expect_raises(ValueError, raising(theirs), given=X, naming=(3,))
    expect_raises(ValueError, raising(theirs), given=X, naming="bad")
    other = Raised(("KeyError", "LookupError", "Exception"), "3")
    with pytest.raises(Mismatch, match="got      KeyError: 3"):
        expect_raises(ValueError, raising(other), given=X)


def test_a_large_input_is_named_and_never_cut() -> None:
    text = show_given(np.zeros((100, 16), np.float32))
    assert text == "an array of float32 with shape (100, 16)"
    assert show_given({"x": X, "bits": 4}) == "x = [0.25, 0.75, 2.5], bits = 4"
    assert show_given(np.float32([[1, 2]])) == "[[1.0, 2.0]]"
    assert show_given([1.5, 2]) == "[1.5, 2.0]"


def test_codes_and_bytes_outside_their_range_are_still_shown() -> None:
    assert show_code(16) == "16, which is no 4-bit code"
    assert show_code(15) == "code 15 = 0b1_11_1"
    assert show_byte(9) == "byte 0x09 = 0b0000_1001"


def test_a_mismatch_is_an_assertion_error_with_its_lines() -> None:
    error = Mismatch("1", "2", given="x", index=(0,))
    assert isinstance(error, AssertionError)
    assert str(error) == "\ngiven    x\nexpected 1 at index 0\ngot      2"


def test_raises_lets_an_unattempted_task_through():
    def unattempted():
        raise Raised(("NotImplementedError", "RuntimeError", "Exception"), "encode_e2m1: replace this line")

    with pytest.raises(Raised):
        expect_raises(ValueError, unattempted, given=[1.0])


def test_parts_of_unequal_shape_are_shown_one_by_one():
    given = (np.float32([1, 2]), np.zeros((3, 40), np.float32), 0.5)
    assert show_given(given) == "[[1.0, 2.0], an array of float32 with shape (3, 40), 0.5]"
    assert show_given([[1, 2], [3]]) == "[[1, 2], [3]]"
