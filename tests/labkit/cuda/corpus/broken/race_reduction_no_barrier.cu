// about: The barrier at the end of each step of a tree reduction is missing.
// kernel: block_sum
// grid: 1
// block: 128
// arg: int32[128] integers(12, 0, 100)
// arg: int32[1] zeros
// expect: race
// says: partial
extern "C" __global__ void block_sum(const int* x, int* total)
{
    __shared__ int partial[128];
    int t = threadIdx.x;
    partial[t] = x[t];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half)
            partial[t] += partial[t + half];  // HERE
    }
    if (t == 0) *total = partial[0];
}
