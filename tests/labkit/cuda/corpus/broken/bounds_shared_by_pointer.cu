// about: A function gets a pointer to shared memory and goes beyond all of it.
// kernel: reduce
// grid: 1
// block: 64
// arg: int32[64] arange
// arg: int32[1] zeros
// expect: out_of_bounds or bad_pointer
__device__ void add_far(int* values, int distance)
{
    values[threadIdx.x] += values[threadIdx.x + distance];  // HERE
}

extern "C" __global__ void reduce(const int* x, int* total)
{
    __shared__ int partial[64];
    partial[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 63) add_far(partial, 64);
    __syncthreads();
    if (threadIdx.x == 0) *total = partial[0];
}
