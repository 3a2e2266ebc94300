// about: Threads beyond the end leave, and those that stay wait for them.
// kernel: reverse
// grid: 1
// block: 64
// arg: int32[50] arange
// arg: int32 50
// expect: barrier
extern "C" __global__ void reverse(int* x, int n)
{
    __shared__ int values[64];
    if (threadIdx.x >= n) return;
    values[threadIdx.x] = x[threadIdx.x];
    __syncthreads();  // HERE
    x[threadIdx.x] = values[n - 1 - threadIdx.x];
}
