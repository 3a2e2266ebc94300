// about: One lane per element: amax by a butterfly over 16 lanes, the odd code comes down from the neighbour.
// kernel: quantise_pack
// grid: 3
// block: 64
// arg: float32[176] normal(86)
// arg: uint8[88] zeros
// arg: uint8[11] zeros
// arg: int32 176
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

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = i < n ? x[i] : 0.0f, amax = fabsf(value);
    for (int distance = 8; distance > 0; distance >>= 1) amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, distance));
    unsigned char scale = encode_e4m3(fminf(fmaxf(amax / 6.0f, 0x1p-9f), 448.0f));
    unsigned int code = encode_e2m1(value / decode_e4m3(scale));
    unsigned int next = __shfl_down_sync(0xffffffffu, code, 1);
    if (i >= n) return;
    if (i % 2 == 0) packed[i / 2] = code | next << 4;
    if (i % 16 == 0) scales[i / 16] = scale;
}
