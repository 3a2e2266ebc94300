// about: Even and odd lanes meet in two different shuffles.
// kernel: swap
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: deadlock
extern "C" __global__ void swap(int* x)
{
    int value = x[threadIdx.x], other;
    if (threadIdx.x % 2 == 0)
        other = __shfl_xor_sync(0xffffffffu, value, 1);  // HERE
    else
        other = __shfl_xor_sync(0xffffffffu, value + 1, 1);  // HERE
    x[threadIdx.x] = other;
}
