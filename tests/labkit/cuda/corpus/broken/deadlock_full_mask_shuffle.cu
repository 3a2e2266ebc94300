// about: A shuffle of all lanes under a condition that half of them fail.
// kernel: half_sum
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: deadlock
// says: __shfl_down_sync
extern "C" __global__ void half_sum(int* x)
{
    int value = x[threadIdx.x];
    if (threadIdx.x < 16) {
        for (int distance = 8; distance > 0; distance /= 2)
            value += __shfl_down_sync(0xffffffffu, value, distance);  // HERE
    }
    x[threadIdx.x] = value;
}
