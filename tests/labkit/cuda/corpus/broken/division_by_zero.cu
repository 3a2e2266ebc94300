// about: An integer over an argument that is 0.
// kernel: divide
// grid: 1
// block: 8
// arg: int32[8] arange
// arg: int32 0
// expect: division_by_zero
extern "C" __global__ void divide(int* x, int n)
{
    x[threadIdx.x] = x[threadIdx.x] / n;  // HERE
}
