// about: Each half of a warp goes its own way with a mask of its own.
// kernel: halves
// grid: 1
// block: 32
// arg: int32[32] integers(55, -100, 100)
// arg: int32[32] zeros
// equals: y = np.concatenate([np.full(16, x[:16].sum()), np.full(16, x[16:].max())])
extern "C" __global__ void halves(const int* x, int* y)
{
    int lane = threadIdx.x, value = x[lane];
    if (lane < 16) {
        for (int distance = 8; distance > 0; distance /= 2) value += __shfl_xor_sync(0x0000ffffu, value, distance);
    } else {
        for (int distance = 8; distance > 0; distance /= 2) value = max(value, __shfl_xor_sync(0xffff0000u, value, distance));
    }
    __syncwarp();
    y[lane] = value;
}
