// about: An array in device memory of the module is left by a pointer.
// kernel: fill
// grid: 1
// block: 32
// arg: int32[1] zeros
// expect: out_of_bounds or bad_pointer
__device__ int scratch[32];

__device__ void put(int* where, int value)
{
    *where = value;  // HERE
}

extern "C" __global__ void fill(int* y)
{
    put(scratch + threadIdx.x + (threadIdx.x == 31 ? 100000 : 0), 1);
    if (threadIdx.x == 0) y[0] = 1;
}
