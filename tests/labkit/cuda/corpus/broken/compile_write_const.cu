// about: An assignment through a pointer to const.
// kernel: fill
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: compile
extern "C" __global__ void fill(const int* y)
{
    y[threadIdx.x] = 1;  // HERE
}
