// about: A barrier that counts is a barrier.
// kernel: count
// grid: 1
// block: 64
// arg: int32[64] arange
// arg: int32[1] zeros
// expect: barrier
extern "C" __global__ void count(const int* x, int* y)
{
    int n = 0;
    if (x[threadIdx.x] < 50)
        n = __syncthreads_count(x[threadIdx.x] % 2);  // HERE
    if (threadIdx.x == 0) *y = n;
}
