// about: Lanes beyond the end have left, and the mask still counts on them.
// kernel: warp_sum
// grid: 1
// block: 32
// arg: int32[20] arange
// arg: int32 20
// expect: deadlock or warp_call
extern "C" __global__ void warp_sum(int* x, int n)
{
    if (threadIdx.x >= n) return;
    int value = x[threadIdx.x];
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);  // HERE
    x[threadIdx.x] = value;
}
