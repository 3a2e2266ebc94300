// about: Static and dynamic shared memory each fit, together they do not.
// kernel: fill
// grid: 1
// block: 32
// shared: 32768
// arg: int32[32] zeros
// expect: launch
extern "C" __global__ void fill(int* y)
{
    __shared__ int fixed[8192];
    extern __shared__ int values[];
    fixed[threadIdx.x] = values[threadIdx.x] = 1;
    y[threadIdx.x] = fixed[threadIdx.x] + values[threadIdx.x];
}
