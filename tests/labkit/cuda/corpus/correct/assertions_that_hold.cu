// about: Assertions and a trap that are never reached.
// kernel: careful
// grid: 1
// block: 32
// arg: int32[32] arange
// equals: x = x + 1
extern "C" __global__ void careful(int* x)
{
    assert(blockDim.x == 32);
    assert(x[threadIdx.x] >= 0 && "values are never negative");
    if (threadIdx.x >= blockDim.x) __trap();
    x[threadIdx.x] += 1;
}
