// about: One thread of each block adds to the total: no barrier reaches across blocks.
// kernel: grid_sum
// grid: 4
// block: 32
// arg: int32[128] arange
// arg: int32[1] zeros
// expect: race
// says: total[0]
extern "C" __global__ void grid_sum(const int* x, int* total)
{
    int sum = __reduce_add_sync(0xffffffffu, x[blockIdx.x * 32 + threadIdx.x]);
    if (threadIdx.x == 0)
        *total += sum;  // HERE
}
