// about: A shuffle moves registers; it does not order shared memory.
// kernel: neighbours
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: race
// says: values
extern "C" __global__ void neighbours(int* x)
{
    __shared__ int values[32];
    int lane = threadIdx.x;
    values[lane] = x[lane];  // HERE
    int left = __shfl_up_sync(0xffffffffu, x[lane], 1);
    x[lane] = left + values[31 - lane];  // HERE
}
