// about: All lanes call, the mask names the lower half.
// kernel: half
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: warp_call
extern "C" __global__ void half(int* x)
{
    x[threadIdx.x] = __shfl_down_sync(0x0000ffffu, x[threadIdx.x], 1, 16);  // HERE
}
