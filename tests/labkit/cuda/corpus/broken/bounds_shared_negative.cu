// about: A scan step looks left of the array.
// kernel: scan_step
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: out_of_bounds
// says: -4
extern "C" __global__ void scan_step(int* x)
{
    __shared__ int buffer[32];
    buffer[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0 || threadIdx.x > 4)
        x[threadIdx.x] = buffer[threadIdx.x] + buffer[(int)threadIdx.x - 4];  // HERE
}
