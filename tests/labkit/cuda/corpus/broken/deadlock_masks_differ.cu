// about: Lanes of one call name different masks.
// kernel: mixed
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: deadlock
extern "C" __global__ void mixed(int* x)
{
    unsigned int mask = threadIdx.x < 16 ? 0xffffffffu : 0xffff0000u;
    x[threadIdx.x] = __shfl_xor_sync(mask, x[threadIdx.x], 1);  // HERE
}
