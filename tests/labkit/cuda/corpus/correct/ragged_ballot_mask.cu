// about: Lanes beyond the end leave; those that stay make a mask of themselves by a ballot before.
// kernel: warp_counts
// grid: 1
// block: 64
// arg: int32[45] integers(52, 0, 100)
// arg: int32[2] zeros
// arg: int32 45
// equals: counts = np.array([(x[:32] > 50).sum(), (x[32:] > 50).sum()])
extern "C" __global__ void warp_counts(const int* x, int* counts, int n)
{
    int i = threadIdx.x;
    unsigned int mask = __ballot_sync(0xffffffffu, i < n);
    if (i >= n) return;
    int first = __shfl_sync(mask, i, 0);
    unsigned int large = __ballot_sync(mask, x[i] > 50);
    if (i == first) counts[i / 32] = __popc(large);
}
