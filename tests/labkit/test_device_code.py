"""The device functions against ml_dtypes: every code and byte, every tie and its neighbours, every bfloat16."""

import ml_dtypes
import numpy as np
import pytest
from labkit import cuda
from labkit.device_code import DEVICE_CODE
from labkit.expect import expect_bytes, expect_codes, expect_values
from labkit.formats import E2M1_MAX, E4M3_MAX

APPLY = """
__device__ unsigned char encode_e4m3(float x);
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);
__device__ float decode_e2m1(unsigned int code);

extern "C" __global__ void encode(const float* x, unsigned char* bytes, unsigned char* codes, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bytes[i] = encode_e4m3(fabsf(x[i]));
    codes[i] = encode_e2m1(x[i]);
}

extern "C" __global__ void decode(float* of_bytes, float* of_codes)
{
    const int i = threadIdx.x;
    of_bytes[i] = decode_e4m3(i);
    of_codes[i] = decode_e2m1(i % 16);
}
"""


def module() -> cuda.RawModule:
    return cuda.RawModule(code=APPLY + DEVICE_CODE)


def encode(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the E4M3 byte of each magnitude and the E2M1 code of each value."""
    given = cuda.xp.asarray(x)
    bytes_, codes = cuda.xp.zeros(x.shape, np.uint8), cuda.xp.zeros(x.shape, np.uint8)
    module().get_function("encode")((-(-x.size // 256),), (256,), (given, bytes_, codes, np.int32(x.size)))
    return cuda.asnumpy(bytes_), cuda.asnumpy(codes)


def every_bfloat16() -> np.ndarray:
    x = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)
    return x[np.isfinite(x)]


def ties_and_neighbours(dtype: type, n_codes: int) -> np.ndarray:
    """Return what lies halfway between neighbours of a format, and the float32 numbers beside it, of both signs."""
    values = np.arange(n_codes, dtype=np.uint8).view(dtype).astype(np.float32)
    ties = np.concatenate([values, (values[1:] + values[:-1]) / 2])
    near = np.concatenate([np.nextafter(ties, np.float32(to)) for to in (-np.inf, np.inf)] + [ties])
    return np.concatenate([near, -near])


@pytest.mark.parametrize(
    "x",
    [
        pytest.param(every_bfloat16(), id="every bfloat16"),
        pytest.param(ties_and_neighbours(ml_dtypes.float8_e4m3fn, 127), id="ties of E4M3"),
        pytest.param(ties_and_neighbours(ml_dtypes.float4_e2m1fn, 8), id="ties of E2M1"),
    ],
)
def test_encoders_round_as_ml_dtypes_does_and_saturate(x: np.ndarray) -> None:
    bytes_, codes = encode(x)
    magnitudes = np.minimum(np.abs(x), np.float32(E4M3_MAX))
    expect_bytes(bytes_, magnitudes.astype(ml_dtypes.float8_e4m3fn).view(np.uint8), given=x)
    clipped = np.clip(x, -np.float32(E2M1_MAX), np.float32(E2M1_MAX))
    expect_codes(codes, clipped.astype(ml_dtypes.float4_e2m1fn).view(np.uint8), given=x)


def test_decoders_give_ml_dtypes_values() -> None:
    of_bytes, of_codes = (cuda.xp.zeros(127, np.float32) for _ in range(2))
    module().get_function("decode")((1,), (127,), (of_bytes, of_codes))
    given = np.arange(127, dtype=np.uint8)
    expect_values(cuda.asnumpy(of_bytes), given.view(ml_dtypes.float8_e4m3fn).astype(np.float32), given=given)
    expected = (given % 16).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    expect_values(cuda.asnumpy(of_codes), expected, given=given, signed_zeros=True)
