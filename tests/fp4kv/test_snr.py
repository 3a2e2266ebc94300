"""Error against bit width on Gaussian data, 320,000 values, beside the figures that are published for it."""

import numpy as np
import pytest
from fp4kv import decode_e2m1, dequantise, encode_e2m1, quantise_e2m1, quantise_int, round_to_e4m3, ue8m0_exponent
from labkit.block_formats import round_trip_fp8, round_trip_mxfp4

N_VALUES = 320_000
INTEGER_GROUP = 32
# Figures are rounded to 0.1 dB: 0.05 dB. The energy of the data has a relative standard deviation of
# sqrt(2 / 320,000) = 0.25 %. That of the error: 0.89 per element where it is uniform, 0.16 per group of 32, and 0.4
# for the square of the group's scale, so 0.43 over 10,000 groups = 0.43 %. Together 0.5 % = 0.022 dB, of which four
# are 0.09 dB. 0.05 + 0.09 < 0.15.
TOLERANCE_DB = 0.15

INTEGERS = {8: (45.4, 46.7), 6: (33.2, 34.6), 4: (20.3, 22.1), 3: (12.9, 15.5), 2: (3.6, 8.1)}


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray:
    """Gaussian data in rows of 64."""
    return rng.normal(size=(N_VALUES // 64, 64)).astype(np.float32)


def snr_db(x: np.ndarray, decoded: np.ndarray) -> float:
    """Signal-to-noise ratio in decibels."""
    signal, noise = np.sum(np.square(x, dtype=np.float64)), np.sum(np.square(x - decoded, dtype=np.float64))
    return float(10 * np.log10(signal / noise))


@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "affine"])
@pytest.mark.parametrize("bits", INTEGERS)
def test_integers(bits: int, symmetric: bool, x: np.ndarray) -> None:
    published = INTEGERS[bits][0 if symmetric else 1]
    decoded = dequantise(quantise_int(x, bits, INTEGER_GROUP, symmetric=symmetric))
    assert snr_db(x, decoded) == pytest.approx(published, abs=TOLERANCE_DB)


def test_e2m1_with_e4m3_scales(x: np.ndarray) -> None:
    assert snr_db(x, dequantise(quantise_e2m1(x))) == pytest.approx(20.4, abs=TOLERANCE_DB)


def test_mxfp4(x: np.ndarray) -> None:
    assert snr_db(x, round_trip_mxfp4(x, encode_e2m1, decode_e2m1)) == pytest.approx(18.8, abs=TOLERANCE_DB)


def test_e4m3_with_ue8m0_scales(x: np.ndarray) -> None:
    assert snr_db(x, round_trip_fp8(x, round_to_e4m3, ue8m0_exponent)) == pytest.approx(31.5, abs=TOLERANCE_DB)
