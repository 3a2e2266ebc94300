// about: More dynamic shared memory than the 48 KiB that a launch may ask for.
// kernel: fill
// grid: 1
// block: 32
// shared: 49156
// arg: int32[32] zeros
// expect: launch
// says: 49152
extern "C" __global__ void fill(int* y)
{
    extern __shared__ int values[];
    values[threadIdx.x] = 1;
    y[threadIdx.x] = values[threadIdx.x];
}
