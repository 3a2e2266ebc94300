// about: The barriers that count and vote, in a loop that the whole block leaves together.
// kernel: halve_until_small
// grid: 3
// block: 40
// arg: int32[3,40] integers(37, 1, 2000)
// arg: int32[3,3] zeros
// equals: result = np.stack([np.floor(np.log2(x)).max(axis=1), (x % 2).sum(axis=1), (x > 3).all(axis=1)], axis=1).astype(np.int32)
extern "C" __global__ void halve_until_small(const int* x, int* result)
{
    int value = x[blockIdx.x * blockDim.x + threadIdx.x], steps = 0;
    int n_odd = __syncthreads_count(value % 2);
    int all_large = __syncthreads_and(value > 3);
    while (__syncthreads_or(value > 1)) {
        value /= 2;
        ++steps;
    }
    if (threadIdx.x == 0) {
        result[3 * blockIdx.x] = steps;
        result[3 * blockIdx.x + 1] = n_odd;
        result[3 * blockIdx.x + 2] = all_large != 0;
    }
}
