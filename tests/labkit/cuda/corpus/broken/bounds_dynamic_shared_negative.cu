// about: Left of the dynamic shared memory there is nothing.
// kernel: left
// grid: 1
// block: 32
// shared: 128
// arg: int32[32] arange
// expect: out_of_bounds
extern "C" __global__ void left(int* x)
{
    extern __shared__ int values[];
    values[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = values[(int)threadIdx.x - 1];  // HERE
}
