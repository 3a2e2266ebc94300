// about: The mask is right, but the reduction over 32 asks lanes that have left, and adds what it gets.
// kernel: warp_sum
// grid: 1
// block: 32
// arg: int32[20] arange
// arg: int32[1] zeros
// arg: int32 20
// expect: warp_call
extern "C" __global__ void warp_sum(const int* x, int* total, int n)
{
    unsigned int mask = __ballot_sync(0xffffffffu, threadIdx.x < n);
    if (threadIdx.x >= n) return;
    int value = x[threadIdx.x];
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(mask, value, distance);  // HERE
    if (threadIdx.x == 0) *total = value;
}
