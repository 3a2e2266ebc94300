// about: The first step of a reduction begins before all values have arrived.
// kernel: block_sum
// grid: 1
// block: 64
// arg: int32[64] integers(13, 0, 100)
// arg: int32[1] zeros
// expect: race
// says: partial
extern "C" __global__ void block_sum(const int* x, int* total)
{
    __shared__ int partial[64];
    int t = threadIdx.x;
    partial[t] = x[t];  // HERE
    for (int half = 32; half > 0; half /= 2) {
        if (t < half)
            partial[t] += partial[t + half];  // HERE
        __syncthreads();
    }
    if (t == 0) *total = partial[0];
}
