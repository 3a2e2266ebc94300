// about: A brace is not closed.
// kernel: fill
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: compile
extern "C" __global__ void fill(int* y)
{
    if (threadIdx.x < 32) {
        y[threadIdx.x] = 1;
}
