// about: The fault lies in a function that the kernel calls, and is named there.
// kernel: gather
// grid: 1
// block: 8
// arg: float32[8] normal(8)
// arg: int32[8] arange
// arg: float32[8] zeros
// expect: out_of_bounds
// says: 14
__device__ float fetch(const float* values, int index)
{
    return values[index];  // HERE
}

extern "C" __global__ void gather(const float* x, const int* index, float* y)
{
    float sum = 0.0f;
    if (threadIdx.x == 7) sum = fetch(x, 2 * index[threadIdx.x]);
    y[threadIdx.x] = sum;
}
