// about: The first block leaves a number in a __device__ variable for the others, which nothing makes wait for it.
// kernel: spread
// grid: 3
// block: 32
// arg: float32[1] ones
// arg: float32[96] zeros
// expect: race
// says: Blocks run in any order
__device__ float factor;

extern "C" __global__ void spread(const float* x, float* y)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) factor = x[0];  // HERE
    __syncthreads();
    y[blockIdx.x * 32 + threadIdx.x] = factor;  // HERE
}
