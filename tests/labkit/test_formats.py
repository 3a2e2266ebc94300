"""The format facts against ml_dtypes and against each other."""

import ml_dtypes
import numpy as np
import pytest
from labkit import formats
from labkit.expect import expect_values

E4M3 = ml_dtypes.finfo(ml_dtypes.float8_e4m3fn)


def test_e2m1_values_are_those_of_ml_dtypes() -> None:
    codes = np.arange(8, dtype=np.uint8)
    expect_values(formats.E2M1_VALUES, codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32), given=codes)
    assert float(ml_dtypes.finfo(ml_dtypes.float4_e2m1fn).max) == formats.E2M1_MAX


def test_ties_are_halfway_between_neighbours() -> None:
    values = formats.E2M1_VALUES
    expect_values(formats.E2M1_TIES, (values[1:] + values[:-1]) / 2, given=values)


def test_e4m3_limits_are_those_of_ml_dtypes() -> None:
    assert float(E4M3.max) == formats.E4M3_MAX
    assert float(E4M3.smallest_normal) == formats.E4M3_MIN_NORMAL
    assert float(E4M3.smallest_subnormal) == formats.E4M3_MIN_SUBNORMAL
    assert E4M3.nmant == formats.E4M3_MANTISSA_BITS


def test_the_range_of_two_levels_is_the_product_of_both_maxima() -> None:
    assert formats.E2M1_MAX * formats.E4M3_MAX == formats.TWO_LEVEL_RANGE


def test_the_largest_ue8m0_exponent_is_the_byte_below_nan() -> None:
    largest = np.uint8([formats.UE8M0_EXPONENT_MAX + 127]).view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    assert largest[0] == 2.0**formats.UE8M0_EXPONENT_MAX


@pytest.mark.parametrize("table", [formats.E2M1_VALUES, formats.E2M1_TIES])
def test_tables_cannot_be_written_to(table: np.ndarray) -> None:
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 1


def test_fields_of_all_codes() -> None:
    texts = [formats.code_fields(code) for code in range(16)]
    assert [int(text.replace("_", ""), 2) for text in texts] == list(range(16))
    assert texts[:2] + texts[-1:] == ["0b0_00_0", "0b0_00_1", "0b1_11_1"]
