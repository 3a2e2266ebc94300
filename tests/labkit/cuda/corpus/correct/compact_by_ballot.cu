// about: Positive values move to the front in order: ballots give the place in a warp, a shared scan the place of the warp.
// kernel: keep_positive
// grid: 1
// block: 96
// arg: int32[90] integers(35, -50, 50)
// arg: int32[90] constant(-1)
// arg: int32[1] zeros
// arg: int32 90
// let: kept = x[x > 0]
// equals: y = np.concatenate([kept, np.full(90 - kept.size, -1, np.int32)])
// equals: count = np.array([kept.size], np.int32)
extern "C" __global__ void keep_positive(const int* x, int* y, int* count, int n)
{
    __shared__ int before[4];
    int i = threadIdx.x, lane = i & 31, warp = i >> 5;
    int value = i < n ? x[i] : 0;
    unsigned int kept = __ballot_sync(0xffffffffu, value > 0);
    if (lane == 0) before[warp + 1] = __popc(kept);
    if (i == 0) before[0] = 0;
    __syncthreads();
    if (i == 0)
        for (int w = 1; w < 4; ++w) before[w] += before[w - 1];
    __syncthreads();
    if (value > 0) y[before[warp] + __popc(kept & ((1u << lane) - 1))] = value;
    if (i == 0) *count = before[3];
}
