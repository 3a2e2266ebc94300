// about: Static and dynamic shared memory side by side.
// kernel: both
// grid: 1
// block: 32
// shared: 128
// arg: int32[32] arange
// equals: x = 3 * x[::-1]
extern __shared__ int dynamic_values[];

extern "C" __global__ void both(int* x)
{
    __shared__ int static_values[32];
    int t = threadIdx.x;
    static_values[t] = x[t];
    dynamic_values[t] = 2 * x[t];
    __syncthreads();
    x[t] = static_values[31 - t] + dynamic_values[31 - t];
}
