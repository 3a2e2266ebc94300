// about: One thread per group: four float4 loads into an array of its own, eight bytes stored as one uint2.
// kernel: quantise_pack
// grid: 1
// block: 16
// arg: float32[192] normal(85)
// arg: uint8[96] zeros
// arg: uint8[12] zeros
// arg: int32 192
// let: want = given.quantise_e2m1(x)
// let: e4m3 = np.array([m * 2.0**-9 if e == 0 else (8 + m) * 2.0**(e - 10) for e in range(16) for m in range(8)][:127])
// equals: packed = given.pack_nibbles(want.codes)
// equals: scales = np.searchsorted(e4m3, want.scales)
__device__ unsigned char encode_e4m3(float x)          // 2^-9 <= x <= 448, nearest, ties to even
{
    unsigned int bits = __float_as_uint(x);
    int exponent = (int)(bits >> 23) - 127;
    if (exponent < -6) return (unsigned char)__float2int_rn(x * 512.0f);
    bits += 0x7ffffu + ((bits >> 20) & 1u);
    return (unsigned char)((bits >> 20) - (120u << 3));
}

__device__ float decode_e4m3(unsigned char code)
{
    int exponent = code >> 3 & 15, mantissa = code & 7;
    return exponent == 0 ? ldexpf((float)mantissa, -9) : ldexpf((float)(8 + mantissa), exponent - 10);
}

__device__ unsigned int encode_e2m1(float x)            // nearest, ties to even
{
    float a = fabsf(x);
    unsigned int code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.0f);
    return code | (__float_as_uint(x) >> 31) << 3;
}

extern "C" __global__ void quantise_pack(const float4* __restrict__ x, uint2* __restrict__ packed,
                                         unsigned char* __restrict__ scales, int n)
{
    for (int group = blockIdx.x * blockDim.x + threadIdx.x; group < n / 16; group += gridDim.x * blockDim.x) {
        float values[16];
        for (int i = 0; i < 4; ++i) *(float4*)&values[4 * i] = x[4 * group + i];
        float amax = 0.0f;
        for (float value : values) amax = fmaxf(amax, fabsf(value));
        unsigned char scale = encode_e4m3(fminf(fmaxf(amax / 6.0f, 0x1p-9f), 448.0f));
        unsigned int words[2] = {0u, 0u};
        for (int i = 0; i < 16; ++i) words[i / 8] |= encode_e2m1(values[i] / decode_e4m3(scale)) << 4 * (i % 8);
        packed[group] = make_uint2(words[0], words[1]);
        scales[group] = scale;
    }
}
