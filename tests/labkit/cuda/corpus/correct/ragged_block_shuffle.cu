// about: A block of half a warp uses the full mask: lanes that the launch never made are not waited for.
// kernel: group_amax
// grid: 5
// block: 16
// arg: float32[5,16] normal(54)
// arg: float32[5] zeros
// equals: amax = np.abs(x).max(axis=1)
extern "C" __global__ void group_amax(const float* x, float* amax)
{
    float largest = fabsf(x[blockIdx.x * 16 + threadIdx.x]);
    for (int distance = 8; distance > 0; distance >>= 1)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
    if (threadIdx.x == 0) amax[blockIdx.x] = largest;
}
