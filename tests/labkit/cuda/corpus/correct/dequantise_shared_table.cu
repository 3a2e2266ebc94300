// about: All 16 values in a shared table that the first threads write; bits of the float are made by hand for the scale.
// kernel: dequantise
// grid: 2
// block: 48
// arg: uint8[48] integers(93, 0, 256)
// arg: uint8[6] integers(94, 1, 127)
// arg: float32[96] zeros
// let: e4m3 = np.array([m * 2.0**-9 if e == 0 else (8 + m) * 2.0**(e - 10) for e in range(16) for m in range(8)][:127])
// let: step = np.repeat(e4m3[scales], 16).astype(np.float32)
// equals: y = given.decode_e2m1(given.unpack_nibbles(packed)) * step
extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* y)
{
    __shared__ float values[16];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    if (t < 16) {
        int magnitude = t & 7;
        float value = magnitude < 2 ? 0.5f * magnitude : ldexpf(1.0f + 0.5f * (magnitude & 1), (magnitude >> 1) - 1);
        values[t] = t < 8 ? value : -value;
    }
    __syncthreads();
    unsigned char code = scales[i / 16];
    float step = code < 8 ? code * 0x1p-9f : __uint_as_float((unsigned int)code << 20 ^ 0u) * 0x1p120f;
    y[i] = values[packed[i / 2] >> 4 * (i & 1) & 15] * step;
}
