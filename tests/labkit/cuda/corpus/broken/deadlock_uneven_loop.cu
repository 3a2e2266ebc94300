// about: A grid-stride loop with a shuffle: in the last turn only some lanes are left.
// kernel: sums
// grid: 1
// block: 32
// arg: int32[40] arange
// arg: int32 40
// expect: deadlock or warp_call
extern "C" __global__ void sums(int* x, int n)
{
    for (int i = threadIdx.x; i < n; i += 32) {
        int left = __shfl_up_sync(0xffffffffu, x[i], 1);  // HERE
        x[i] += threadIdx.x ? left : 0;
    }
}
