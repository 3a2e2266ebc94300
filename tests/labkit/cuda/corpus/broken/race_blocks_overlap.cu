// about: Blocks write 32 elements each but lie 31 apart.
// kernel: fill
// grid: 3
// block: 32
// arg: int32[94] zeros
// expect: race
// says: y[
extern "C" __global__ void fill(int* y)
{
    y[blockIdx.x * 31 + threadIdx.x] = blockIdx.x;  // HERE
}
