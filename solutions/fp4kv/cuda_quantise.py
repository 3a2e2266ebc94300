"""Tasks of `lab05_kernel` in CUDA C: quantise and pack a cache, and the way back.

Each text is a skeleton that a student gets, with one loop to write, and ends with the device functions of labkit.
"""

from labkit.device_code import DEVICE_CODE

QUANTISE_PACK = (
    r"""
__device__ unsigned char encode_e4m3(float x);       // byte of the nearest E4M3 number, ties to even; x at least 0
__device__ float decode_e4m3(unsigned char byte);
__device__ unsigned int encode_e2m1(float x);        // code of the nearest E2M1 number, ties to even

#define FULL_WARP 0xffffffffu                        // all 32 lanes take part in a shuffle

// x: 16 * n_groups finite numbers. packed: 8 bytes for each group. scales: one E4M3 byte for each group.
//
// One lane holds one element, so a warp holds two groups: lanes 0 to 15 and 16 to 31. A warp takes 32 elements, then
// the 32 that lie one grid further. All of its lanes stay in the loop equally often: a shuffle needs every one of them,
// also where only half a warp of elements is left. Launch with a multiple of 32 threads for each block.
extern "C" __global__ void quantise_pack(const float* x, unsigned char* packed, unsigned char* scales, int n_groups)
{
    const int lane = threadIdx.x % 32;
    const long long n_elements = 16LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x - lane;   // the warp's first element

    // For each 32 elements from `first` on, `n_threads` further each time: read this lane's element (0 beyond the end),
    // find the largest magnitude of its group of 16 lanes, encode the scale amax / 6 (at least 2^-9), divide by what
    // the scale's byte stands for, encode, and write: even lanes one byte for two codes, lanes 0 and 16 one scale.
    // Divisions are correctly rounded: __fdiv_rn.
    // ### BEGIN SOLUTION
    for (long long start = first; start < n_elements; start += n_threads) {
        const long long i = start + lane;
        const float value = i < n_elements ? x[i] : 0.0f;

        float amax = fabsf(value);
        for (int distance = 8; distance > 0; distance /= 2)          // from 8 down, lanes stay within their 16
            amax = fmaxf(amax, __shfl_xor_sync(FULL_WARP, amax, distance));

        const unsigned char scale = encode_e4m3(fmaxf(__fdiv_rn(amax, 6.0f), 0.001953125f));
        const unsigned int code = encode_e2m1(__fdiv_rn(value, decode_e4m3(scale)));
        const unsigned int next = __shfl_down_sync(FULL_WARP, code, 1);    // so that each byte has one writer

        if (i < n_elements && lane % 2 == 0) packed[i / 2] = code | next << 4;
        if (i < n_elements && lane % 16 == 0) scales[i / 16] = scale;
    }
    // ### END SOLUTION
}
"""
    + DEVICE_CODE
)
"""Kernel `quantise_pack(x, packed, scales, n_groups)`: float32 to packed E2M1 and one E4M3 byte per 16."""

DEQUANTISE = (
    r"""
__device__ float decode_e4m3(unsigned char byte);
__device__ float decode_e2m1(unsigned int code);     // codes 0 to 15

// packed: 8 bytes for each group. scales: one E4M3 byte for each group. x: 16 * n_groups numbers, written.
//
// One thread takes one byte, which is two neighbours, then the byte that lies one grid further. It writes both at once,
// as a float2, so that a warp's 32 stores fill 256 bytes without a gap.
extern "C" __global__ void dequantise(const unsigned char* packed, const unsigned char* scales, float* x, int n_groups)
{
    const long long n_bytes = 8LL * n_groups;
    const long long n_threads = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float2* pairs = reinterpret_cast<float2*>(x);    // pairs[j] is x[2 * j] and x[2 * j + 1]

    // For each byte j from `first` on, `n_threads` further each time: write value times scale of its low half, which is
    // element 2 * j, and of its high half.
    // ### BEGIN SOLUTION
    for (long long j = first; j < n_bytes; j += n_threads) {
        const unsigned int byte = packed[j];
        const float scale = decode_e4m3(scales[j / 8]);
        pairs[j] = make_float2(decode_e2m1(byte & 15u) * scale, decode_e2m1(byte >> 4) * scale);
    }
    // ### END SOLUTION
}
"""
    + DEVICE_CODE
)
"""Kernel `dequantise(packed, scales, x, n_groups)`: the way back, exact in float32."""
