// about: The grid is rounded up and nobody asks whether there is an element left to read.
// kernel: twice
// grid: 4
// block: 32
// arg: float32[101] normal(1)
// arg: float32[128] zeros
// expect: out_of_bounds
// says: x[
// says: 101
extern "C" __global__ void twice(const float* x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2.0f * x[i];  // HERE
}
