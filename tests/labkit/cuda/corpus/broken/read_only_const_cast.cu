// about: const_cast in a function, with __restrict__ on the parameter.
// kernel: normalise
// grid: 1
// block: 8
// arg: float32[8] normal(38)
// arg: float32[8] zeros
// expect: read_only
__device__ void store(float* where, float value)
{
    *where = value;  // HERE
}

extern "C" __global__ void normalise(const float* __restrict__ x, float* __restrict__ y)
{
    store(const_cast<float*>(x) + threadIdx.x, 1.0f);
    y[threadIdx.x] = x[threadIdx.x];
}
