// about: A mask made of the lane's number instead of its bit.
// kernel: alone
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: warp_call
extern "C" __global__ void alone(int* x)
{
    if (threadIdx.x == 5)
        x[5] = __shfl_sync(5u, x[5], 0);  // HERE
}
