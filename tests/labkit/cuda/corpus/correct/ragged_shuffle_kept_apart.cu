// about: In a ragged warp a lane may ask a lane that is not there, as long as it throws the answer away.
// kernel: suffix_sum
// grid: 1
// block: 64
// arg: int32[45] integers(53, -10, 10)
// arg: int32[2] zeros
// arg: int32 45
// equals: sums = np.array([x[:32].sum(), x[32:].sum()])
extern "C" __global__ void suffix_sum(const int* x, int* sums, int n)
{
    int i = threadIdx.x, lane = i % 32;
    int n_lanes = min(32, n - (i - lane));
    unsigned int mask = __ballot_sync(0xffffffffu, lane < n_lanes);
    if (lane >= n_lanes) return;
    int sum = x[i];
    for (int distance = 1; distance < 32; distance *= 2) {
        int other = __shfl_down_sync(mask, sum, distance);
        if (lane + distance < n_lanes) sum += other;
    }
    if (lane == 0) sums[i / 32] = sum;
}
