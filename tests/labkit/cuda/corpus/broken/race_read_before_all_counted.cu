// about: Thread 0 adds its own share to a sum by an atomic and reads it without waiting for the others.
// kernel: block_sum
// grid: 1
// block: 64
// arg: int32[64] arange
// arg: int32[1] zeros
// expect: race
// says: sum
extern "C" __global__ void block_sum(const int* x, int* total)
{
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, x[threadIdx.x]);  // HERE
    if (threadIdx.x == 0)
        *total = sum;  // HERE
}
