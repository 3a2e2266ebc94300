// about: Thread 0 looks at its left neighbour.
// kernel: difference
// grid: 1
// block: 32
// arg: float32[32] normal(2)
// arg: float32[32] zeros
// expect: out_of_bounds
// says: x[-1]
extern "C" __global__ void difference(const float* x, float* y)
{
    int i = threadIdx.x;
    y[i] = x[i] - x[i - 1];  // HERE
}
