// about: A pointer walks through one shared array, and one step further, where the next one was declared.
// kernel: walk
// grid: 1
// block: 32
// arg: float32[64] ones
// arg: float32[32] zeros
// arg: int32 33
// expect: out_of_bounds
// says: first[32], but first has 128 bytes
__device__ float sum_of(const float* from, const float* end)
{
    float sum = 0.0f;
    for (; from != end; ++from) sum += *from;  // HERE
    return sum;
}

extern "C" __global__ void walk(const float* x, float* y, int n)
{
    __shared__ float first[32];
    __shared__ float second[32];
    first[threadIdx.x] = x[threadIdx.x];
    second[threadIdx.x] = x[threadIdx.x + 32];
    __syncthreads();
    y[threadIdx.x] = sum_of(first, first + n) + second[threadIdx.x];
}
