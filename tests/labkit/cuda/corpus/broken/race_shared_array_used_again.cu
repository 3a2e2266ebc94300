// about: Two reductions share one array, and the second begins while the result of the first is still read.
// kernel: normalise
// grid: 1
// block: 64
// arg: float32[64] normal(82)
// expect: race
// says: shared
__device__ float block_sum(float value, float* shared)
{
    shared[threadIdx.x] = value;  // HERE
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    return shared[0];  // HERE
}

extern "C" __global__ void normalise(float* x)
{
    __shared__ float shared[64];
    float mean = block_sum(x[threadIdx.x], shared) / 64.0f;
    float spread = block_sum((x[threadIdx.x] - mean) * (x[threadIdx.x] - mean), shared);
    x[threadIdx.x] = (x[threadIdx.x] - mean) / sqrtf(spread / 64.0f);
}
