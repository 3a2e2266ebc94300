// about: The output is shorter than the grid.
// kernel: count
// grid: 2
// block: 32
// arg: int32[63] zeros
// expect: out_of_bounds
// says: y[63]
extern "C" __global__ void count(int* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = i;  // HERE
}
