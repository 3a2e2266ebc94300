// about: One lane per byte: two elements as float2, eight lanes to a group.
// kernel: quantise_pack
// grid: 2
// block: 64
// arg: float32[208] normal(84)
// arg: uint8[104] zeros
// arg: uint8[13] zeros
// arg: int32 208
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

extern "C" __global__ void quantise_pack(const float2* x, unsigned char* packed, unsigned char* scales, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float2 pair = 2 * i < n ? x[i] : make_float2(0.0f, 0.0f);
    float amax = fmaxf(fabsf(pair.x), fabsf(pair.y));
#pragma unroll
    for (int distance = 4; distance; distance /= 2) amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, distance, 8));
    unsigned char scale = encode_e4m3(fminf(fmaxf(amax / 6.0f, 0x1p-9f), 448.0f));
    float step = decode_e4m3(scale);
    if (2 * i < n) {
        packed[i] = (unsigned char)(encode_e2m1(pair.x / step) | encode_e2m1(pair.y / step) << 4);
        if (i % 8 == 0) scales[i / 8] = scale;
    }
}
