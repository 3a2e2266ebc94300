// about: Thread 0 sets the counter to zero, and nobody waits for it.
// kernel: count
// grid: 1
// block: 64
// orders: 1 2
// arg: int32[64] arange
// arg: int32[1] zeros
// expect: race or uninitialised
// says: counter
extern "C" __global__ void count(const int* x, int* y)
{
    __shared__ int counter;
    if (threadIdx.x == 0)
        counter = 0;  // HERE
    if (x[threadIdx.x] % 2 == 0)
        atomicAdd(&counter, 1);  // HERE
    __syncthreads();
    if (threadIdx.x == 0) *y = counter;
}
