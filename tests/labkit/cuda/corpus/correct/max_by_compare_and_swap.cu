// about: atomicMax for floats, made of atomicCAS on their bits.
// kernel: grid_max
// grid: 4
// block: 32
// arg: float32[128] normal(12)
// arg: float32[1] constant(-1e30)
// equals: largest = x.max(keepdims=True)
__device__ void atomic_max(float* address, float value)
{
    int* bits = (int*)address;
    int seen = *(volatile int*)bits;
    while (value > __int_as_float(seen)) {
        int expected = seen;
        seen = atomicCAS(bits, expected, __float_as_int(value));
        if (seen == expected) break;
    }
}

extern "C" __global__ void grid_max(const float* x, float* largest)
{
    atomic_max(largest, x[blockIdx.x * blockDim.x + threadIdx.x]);
}
