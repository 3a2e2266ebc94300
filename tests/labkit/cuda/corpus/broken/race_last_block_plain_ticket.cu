// about: The ticket is counted up by plain reads and writes.
// kernel: grid_sum
// grid: 4
// block: 32
// arg: int32[128] arange
// arg: int32[4] zeros
// arg: int32[1] zeros
// arg: int32[1] zeros
// expect: race
// says: tickets[0]
extern "C" __global__ void grid_sum(const int* x, int* partial, int* total, int* tickets)
{
    int sum = __reduce_add_sync(0xffffffffu, x[blockIdx.x * 32 + threadIdx.x]);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        int ticket = (*tickets)++;  // HERE
        if (ticket == 3) {
            for (int b = 0; b < 3; ++b) sum += partial[b];
            *total = sum;
        }
    }
}
