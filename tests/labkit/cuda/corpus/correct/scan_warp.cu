// about: Inclusive scan of a warp by __shfl_up_sync, a scan of the warps' sums, both added.
// kernel: inclusive_scan
// grid: 1
// block: 128
// arg: int32[128] integers(30, -100, 100)
// equals: x = np.cumsum(x, dtype=np.int32)
__device__ __forceinline__ int warp_scan(int value, int lane)
{
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        int left = __shfl_up_sync(0xffffffffu, value, distance);
        if (lane >= distance) value += left;
    }
    return value;
}

extern "C" __global__ void inclusive_scan(int* x)
{
    __shared__ int sums[4];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int value = warp_scan(x[threadIdx.x], lane);
    if (lane == 31) sums[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int sum = warp_scan(lane < 4 ? sums[lane] : 0, lane);
        if (lane < 4) sums[lane] = sum;
    }
    __syncthreads();
    if (warp > 0) value += sums[warp - 1];
    x[threadIdx.x] = value;
}
