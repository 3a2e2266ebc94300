// about: The length is not passed.
// kernel: fill
// grid: 1
// block: 8
// arg: float32[8] zeros
// expect: argument
// says: 2
extern "C" __global__ void fill(float* y, int n)
{
    if (threadIdx.x < n) y[threadIdx.x] = 1.0f;
}
