// about: __syncwarp for all lanes, under a condition.
// kernel: some
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: deadlock
// says: __syncwarp
extern "C" __global__ void some(int* x)
{
    if (x[threadIdx.x] > 10) {
        x[threadIdx.x] = 0;
        __syncwarp();  // HERE
    }
    x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1);  // HERE
}
