// about: Lanes with the same bin find each other with __match_any_sync; the first of them adds for all.
// kernel: histogram
// grid: 2
// block: 64
// arg: int32[128] integers(33, 0, 5)
// arg: int32[5] zeros
// equals: counts = np.bincount(x, minlength=5).astype(np.int32)
extern "C" __global__ void histogram(const int* x, int* counts)
{
    int bin = x[blockIdx.x * blockDim.x + threadIdx.x], lane = threadIdx.x & 31;
    unsigned int peers = __match_any_sync(0xffffffffu, bin);
    if (lane == __ffs(peers) - 1) atomicAdd(&counts[bin], __popc(peers));
}
