// about: Half of the dynamic shared memory is written, all of it is read.
// kernel: reverse
// grid: 1
// block: 32
// shared: 128
// arg: int32[32] arange
// expect: uninitialised
extern "C" __global__ void reverse(int* x)
{
    extern __shared__ int values[];
    if (threadIdx.x % 2) values[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = values[31 - threadIdx.x];  // HERE
}
