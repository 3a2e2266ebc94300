// about: A device function is told a length that its caller's local array does not have.
// kernel: average
// grid: 1
// block: 32
// arg: float32[32] zeros
// arg: int32 5
// expect: out_of_bounds
// says: a local variable, beyond
__device__ float sum(const float* values, int n)
{
    float total = 0.0f;
    for (int i = 0; i < n; ++i) total += values[i];  // HERE
    return total;
}

extern "C" __global__ void average(float* y, int n)
{
    float values[4], weights[4];
    for (int i = 0; i < 4; ++i) {
        values[i] = threadIdx.x;
        weights[i] = 0.25f;
    }
    y[threadIdx.x] = sum(values, n) * weights[threadIdx.x % 4];
}
