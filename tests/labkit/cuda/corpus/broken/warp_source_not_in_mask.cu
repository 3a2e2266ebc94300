// about: The lower half of a warp asks the upper half, which does not take part.
// kernel: ask
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: warp_call
extern "C" __global__ void ask(int* x)
{
    if (threadIdx.x < 16)
        x[threadIdx.x] += __shfl_xor_sync(0x0000ffffu, x[threadIdx.x], 16);  // HERE
}
