// about: The barrier hides in a function that only some threads call.
// kernel: outer
// grid: 1
// block: 64
// arg: int32[64] arange
// expect: barrier
__device__ void publish(int* where, int value)
{
    *where = value;
    __syncthreads();  // HERE
}

extern "C" __global__ void outer(int* x)
{
    if (x[threadIdx.x] % 3 == 0) publish(x + threadIdx.x, 0);
}
