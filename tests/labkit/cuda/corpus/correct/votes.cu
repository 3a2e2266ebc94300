// about: __any_sync, __all_sync and __ballot_sync over rows of one warp.
// kernel: votes
// grid: 4
// block: 32
// arg: int32[4,32] integers(36, -1, 30)
// arg: int32[4,3] zeros
// equals: result = np.stack([(x < 0).any(1), (x >= 0).all(1), (x > 15).sum(1)], axis=1).astype(np.int32)
extern "C" __global__ void votes(const int* x, int* result)
{
    int value = x[blockIdx.x * 32 + threadIdx.x];
    int has_negative = __any_sync(0xffffffffu, value < 0);
    int all_fine = __all_sync(0xffffffffu, value >= 0);
    unsigned int large = __ballot_sync(0xffffffffu, value > 15);
    if (threadIdx.x == 7) {
        result[3 * blockIdx.x] = has_negative != 0;
        result[3 * blockIdx.x + 1] = all_fine != 0;
        result[3 * blockIdx.x + 2] = __popc(large);
    }
}
