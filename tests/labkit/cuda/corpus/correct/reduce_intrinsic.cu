// about: The warp reduction intrinsics for integers, with the full mask and with half a warp.
// kernel: warp_reductions
// grid: 1
// block: 64
// arg: int32[64] integers(8, -1000, 1000)
// arg: int32[2,4] zeros
// let: by_warp = x.reshape(2, 32)
// let: halves = by_warp.reshape(2, 2, 16)
// equals: result = np.stack([by_warp.sum(1), by_warp.min(1), by_warp.max(1), halves[:, 1].sum(1)], axis=1)
extern "C" __global__ void warp_reductions(const int* x, int* result)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, value = x[threadIdx.x];
    int sum = __reduce_add_sync(0xffffffffu, value);
    int smallest = __reduce_min_sync(0xffffffffu, value);
    int largest = __reduce_max_sync(0xffffffffu, value);
    int upper = 0;
    if (lane >= 16) upper = __reduce_add_sync(0xffff0000u, value);
    if (lane == 31) {
        result[4 * warp] = sum;
        result[4 * warp + 1] = smallest;
        result[4 * warp + 2] = largest;
        result[4 * warp + 3] = upper;
    }
}
