// about: The last steps of a reduction rely on lanes that march together, as they no longer do.
// kernel: block_sum
// grid: 1
// block: 64
// arg: int32[64] integers(24, 0, 100)
// arg: int32[1] zeros
// expect: race
// says: partial
extern "C" __global__ void block_sum(const int* x, int* total)
{
    __shared__ volatile int partial[64];
    int t = threadIdx.x;
    partial[t] = x[t];
    __syncthreads();
    if (t < 32) {
        partial[t] += partial[t + 32];  // HERE
        partial[t] += partial[t + 16];  // HERE
        partial[t] += partial[t + 8];  // HERE
        partial[t] += partial[t + 4];  // HERE
        partial[t] += partial[t + 2];  // HERE
        partial[t] += partial[t + 1];  // HERE
        if (t == 0) *total = partial[0];  // HERE
    }
}
