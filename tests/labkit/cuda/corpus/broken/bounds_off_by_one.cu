// about: `<=` where `<` is meant.
// kernel: negate
// grid: 2
// block: 32
// arg: int32[50] arange
// arg: int32 50
// expect: out_of_bounds
// says: x[50]
extern "C" __global__ void negate(int* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) x[i] = -x[i];  // HERE
}
