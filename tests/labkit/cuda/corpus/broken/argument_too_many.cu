// about: One argument more than the kernel has parameters.
// kernel: fill
// grid: 1
// block: 8
// arg: float32[8] zeros
// arg: int32 8
// expect: argument
// says: 1
extern "C" __global__ void fill(float* y)
{
    y[threadIdx.x] = 1.0f;
}
