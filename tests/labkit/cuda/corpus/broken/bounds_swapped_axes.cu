// about: Rows and columns change places in the index.
// kernel: add_one
// grid: 1
// block: 8 4
// arg: int32[4,8] arange
// expect: out_of_bounds
extern "C" __global__ void add_one(int* x)
{
    x[threadIdx.x * 8 + threadIdx.y] += 1;  // HERE
}
