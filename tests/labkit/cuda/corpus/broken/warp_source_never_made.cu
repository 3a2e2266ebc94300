// about: A block of 24 threads reduces as if there were 32 lanes.
// kernel: warp_sum
// grid: 1
// block: 24
// arg: int32[24] arange
// arg: int32[1] zeros
// expect: warp_call
extern "C" __global__ void warp_sum(const int* x, int* total)
{
    int value = x[threadIdx.x];
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffffu, value, distance);  // HERE
    if (threadIdx.x == 0) *total = value;
}
