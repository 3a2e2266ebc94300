// about: One thread per element; two threads read the same byte, sixteen the same scale.
// kernel: dequantise
// grid: 3
// block: 64
// arg: uint8[88] integers(93, 0, 256)
// arg: uint8[11] integers(94, 1, 127)
// arg: float32[176] zeros
// arg: int32 176
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

extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int byte = packed[i / 2];
    y[i] = decode_e2m1(i % 2 ? byte >> 4 : byte & 15) * decode_e4m3(scales[i / 16]);
}
