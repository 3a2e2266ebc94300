// about: An array of one element where the kernel takes a number.
// kernel: fill
// grid: 1
// block: 8
// arg: float32[8] zeros
// arg: int32[1] ones
// expect: argument
// says: n
extern "C" __global__ void fill(float* y, int n)
{
    if (threadIdx.x < n) y[threadIdx.x] = 1.0f;
}
