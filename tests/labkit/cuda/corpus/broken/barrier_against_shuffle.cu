// about: Half of a warp waits at the block barrier, the other half in a shuffle for all lanes.
// kernel: stuck
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: deadlock or barrier
extern "C" __global__ void stuck(int* x)
{
    int value = x[threadIdx.x];
    if (threadIdx.x < 16)
        __syncthreads();  // HERE
    else
        value = __shfl_xor_sync(0xffffffffu, value, 1);  // HERE
    x[threadIdx.x] = value;
}
