// about: Thread 0 lends the address of its own variable; another thread follows it.
// kernel: lend
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: bad_pointer
extern "C" __global__ void lend(int* y)
{
    __shared__ int* lent;
    int mine[2] = {(int)threadIdx.x, 7};
    if (threadIdx.x == 0) lent = mine;
    __syncthreads();
    y[threadIdx.x] = threadIdx.x == 5 ? lent[1] : mine[threadIdx.x % 2];  // HERE
    __syncthreads();
}
