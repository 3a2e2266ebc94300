// about: Counted by atomics, read without waiting for them.
// kernel: count
// grid: 1
// block: 64
// arg: int32[64] arange
// arg: int32[64] zeros
// expect: race
// says: counter
extern "C" __global__ void count(const int* x, int* y)
{
    __shared__ int counter;
    if (threadIdx.x == 0) counter = 0;
    __syncthreads();
    if (x[threadIdx.x] % 2)
        atomicAdd(&counter, 1);  // HERE
    y[threadIdx.x] = counter;  // HERE
}
