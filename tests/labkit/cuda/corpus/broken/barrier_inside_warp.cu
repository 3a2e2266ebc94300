// about: The odd threads of each warp wait alone.
// kernel: odd
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: barrier
extern "C" __global__ void odd(int* x)
{
    if (threadIdx.x % 2) __syncthreads();  // HERE
    x[threadIdx.x] += 1;
}
