// about: Two groups of 16 lanes reduce apart in one warp, by the width argument.
// kernel: group_amax
// grid: 2
// block: 96
// arg: float32[12,16] normal(6)
// arg: float32[12] zeros
// equals: amax = np.abs(x).max(axis=1)
extern "C" __global__ void group_amax(const float* x, float* amax)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float largest = fabsf(x[i]);
    for (int distance = 8; distance > 0; distance >>= 1)
        largest = fmaxf(largest, __shfl_down_sync(0xffffffffu, largest, distance, 16));
    if (i % 16 == 0) amax[i / 16] = largest;
}
