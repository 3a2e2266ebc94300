// about: An unsigned index below zero is a very large one.
// kernel: difference
// grid: 1
// block: 32
// arg: int32[32] arange
// arg: int32[32] zeros
// expect: out_of_bounds or bad_pointer
extern "C" __global__ void difference(const int* x, int* y)
{
    unsigned int i = threadIdx.x;
    y[i] = x[i] - x[i - 1u];  // HERE
}
