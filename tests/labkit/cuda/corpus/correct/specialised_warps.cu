// about: Warps with different work meet at one barrier; full masks inside a branch that whole warps take.
// kernel: mean_and_largest
// grid: 2
// block: 64
// arg: float32[2,64] integers(57, -64, 64)
// arg: float32[2,64] zeros
// equals: y = (x - x.mean(axis=1, keepdims=True)) + x.max(axis=1, keepdims=True)
extern "C" __global__ void mean_and_largest(const float* x, float* y)
{
    __shared__ float mean, largest;
    const float* row = x + blockIdx.x * 64;
    int lane = threadIdx.x & 31;
    if (threadIdx.x < 32) {
        float sum = row[lane] + row[lane + 32];
        for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
        if (lane == 0) mean = sum / 64.0f;
    } else {
        float most = fmaxf(row[lane], row[lane + 32]);
        for (int d = 16; d > 0; d >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
        if (lane == 0) largest = most;
    }
    __syncthreads();
    y[blockIdx.x * 64 + threadIdx.x] = (row[threadIdx.x] - mean) + largest;
}
