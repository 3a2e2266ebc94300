// about: A remainder whose divisor comes from data.
// kernel: wrap
// grid: 1
// block: 8
// arg: int32[8] arange
// expect: division_by_zero
extern "C" __global__ void wrap(int* x)
{
    int window = x[threadIdx.x] - 3;
    x[threadIdx.x] = 100 % window;  // HERE
}
