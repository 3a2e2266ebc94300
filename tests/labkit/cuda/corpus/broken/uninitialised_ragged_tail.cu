// about: Threads beyond the end write nothing into shared memory, and the reduction reads all of it.
// kernel: block_sum
// grid: 1
// block: 64
// arg: int32[50] arange
// arg: int32[1] zeros
// arg: int32 50
// expect: uninitialised
// says: partial
extern "C" __global__ void block_sum(const int* x, int* total, int n)
{
    __shared__ int partial[64];
    int t = threadIdx.x;
    if (t < n) partial[t] = x[t];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half)
            partial[t] += partial[t + half];  // HERE
        __syncthreads();
    }
    if (t == 0) *total = partial[0];
}
