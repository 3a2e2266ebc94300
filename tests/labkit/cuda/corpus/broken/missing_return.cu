// about: One way through a function returns nothing.
// kernel: decode
// grid: 1
// block: 8
// arg: float32[8] zeros
// expect: missing_return
__device__ float magnitude(int code)  // HERE
{
    if (code == 0) return 0.0f;
    if (code < 5) return 0.5f * code;
}  // HERE

extern "C" __global__ void decode(float* y) { y[threadIdx.x] = magnitude(threadIdx.x); }
