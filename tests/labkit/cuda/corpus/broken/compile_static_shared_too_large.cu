// about: A static array of more than 48 KiB.
// kernel: fill
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: compile or launch
// says: shared
extern "C" __global__ void fill(int* y)
{
    __shared__ int values[12289];
    values[threadIdx.x + 12256] = threadIdx.x;
    y[threadIdx.x] = values[threadIdx.x + 12256];
}
