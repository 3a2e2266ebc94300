// about: One thread per 8 codes reads a whole word and writes two float4.
// kernel: dequantise
// grid: 1
// block: 24
// arg: uint8[80] integers(93, 0, 256)
// arg: uint8[10] integers(94, 1, 127)
// arg: float32[160] zeros
// arg: int32 160
// let: e4m3 = np.array([m * 2.0**-9 if e == 0 else (8 + m) * 2.0**(e - 10) for e in range(16) for m in range(8)][:127])
// let: step = np.repeat(e4m3[scales], 16).astype(np.float32)
// equals: y = given.decode_e2m1(given.unpack_nibbles(packed)) * step
__device__ float decode_e4m3(unsigned char code)
{
    int exponent = code >> 3 & 15, mantissa = code & 7;
    return exponent == 0 ? ldexpf((float)mantissa, -9) : ldexpf((float)(8 + mantissa), exponent - 10);
}

__device__ float decode_e2m1(unsigned int code)
{
    const float magnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

extern "C" __global__ void dequantise(const unsigned int* packed, const unsigned char* scales, float4* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 8) return;
    unsigned int word = packed[i];
    float step = decode_e4m3(scales[i / 2]), value[8];
#pragma unroll
    for (int k = 0; k < 8; ++k, word >>= 4) value[k] = decode_e2m1(word & 15u) * step;
    y[2 * i] = make_float4(value[0], value[1], value[2], value[3]);
    y[2 * i + 1] = make_float4(value[4], value[5], value[6], value[7]);
}
