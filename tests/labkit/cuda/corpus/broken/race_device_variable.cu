// about: A sum in a __device__ variable: threads of a block add to it without an atomic.
// kernel: total
// grid: 1
// block: 64
// arg: float32[64] ones
// arg: float32[1] zeros
// expect: race
// says: sums[1] is used by two threads at once
__device__ float sums[2];

extern "C" __global__ void total(const float* x, float* y)
{
    sums[1] += x[threadIdx.x];  // HERE
    __syncthreads();
    if (threadIdx.x == 0) y[0] = sums[1];
}
