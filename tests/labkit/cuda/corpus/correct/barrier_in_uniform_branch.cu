// about: Barriers in a branch and in a loop whose conditions are the same for the whole block.
// kernel: rounds
// grid: 4
// block: 32
// arg: int32[4,32] integers(58, 0, 100)
// arg: int32[4] arange
// let: after = lambda row, n: row if n == 0 else after(np.roll(row, 1), n - 1)
// equals: x = np.stack([after(x[b], n_rounds[b]) for b in range(4)])
extern "C" __global__ void rounds(int* x, const int* n_rounds)
{
    __shared__ int row[32];
    int t = threadIdx.x, n = n_rounds[blockIdx.x], value = x[blockIdx.x * 32 + t];
    if (n > 0) {
        row[t] = value;
        __syncthreads();
        for (int i = 0; i < n; ++i) {
            value = row[(t + 31) % 32];
            __syncthreads();
            row[t] = value;
            __syncthreads();
        }
    }
    x[blockIdx.x * 32 + t] = value;
}
