// about: The launch gives less dynamic shared memory than the kernel uses.
// kernel: reverse
// grid: 1
// block: 32
// shared: 124
// arg: float32[32] normal(9)
// expect: out_of_bounds
// says: 124
extern "C" __global__ void reverse(float* x)
{
    extern __shared__ float values[];
    values[threadIdx.x] = x[threadIdx.x];  // HERE
    __syncthreads();
    x[threadIdx.x] = values[31 - threadIdx.x];
}
