// about: The partial sums are announced by a ticket, but no fence stands between the sum and its ticket.
// kernel: grid_sum
// grid: 4
// block: 32
// arg: int32[128] arange
// arg: int32[4] zeros
// arg: int32[1] zeros
// arg: uint32[1] zeros
// expect: race
// says: partial[
extern "C" __global__ void grid_sum(const int* x, int* partial, int* total, unsigned int* tickets)
{
    int sum = __reduce_add_sync(0xffffffffu, x[blockIdx.x * 32 + threadIdx.x]);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;  // HERE
        if (atomicAdd(tickets, 1u) == gridDim.x - 1) {
            sum = 0;
            for (int b = 0; b < gridDim.x; ++b)
                sum += partial[b];  // HERE
            *total = sum;
        }
    }
}
