// about: The last group is not full: what is missing counts as zero.
// kernel: quantise_pack
// grid: 2
// block: 32
// arg: float32[53] normal(91)
// arg: uint8[27] zeros
// arg: float32[4] zeros
// arg: int32 53
// let: groups = np.pad(x, (0, 11)).reshape(4, 16)
// let: steps = np.abs(groups).max(axis=1) / np.float32(6)
// equals: packed = given.pack_nibbles(given.encode_e2m1(groups / steps[:, None]).ravel())[:27]
// equals: scales = steps
__device__ unsigned int encode_e2m1(float x)            // nearest, ties to even
{
    float a = fabsf(x);
    unsigned int code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.0f);
    return code | (__float_as_uint(x) >> 31) << 3;
}

extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, float* scales, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = i < n ? x[i] : 0.0f, amax = fabsf(value);
    for (int distance = 8; distance > 0; distance >>= 1) amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, distance));
    float step = amax / 6.0f;
    unsigned int code = step > 0.0f ? encode_e2m1(value / step) : 0u;
    unsigned int above = __shfl_down_sync(0xffffffffu, code, 1);
    if (i < n && i % 2 == 0) packed[i / 2] = code | above << 4;
    if (i < n && i % 16 == 0) scales[i / 16] = step;
}
