// about: A float32 where the kernel takes an int of the same size.
// kernel: fill
// grid: 1
// block: 8
// arg: float32[8] zeros
// arg: float32 8
// expect: argument
// says: int32
extern "C" __global__ void fill(float* y, int n)
{
    if (threadIdx.x < n) y[threadIdx.x] = 1.0f;
}
