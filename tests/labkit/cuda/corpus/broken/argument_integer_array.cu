// about: An array of integers where the kernel reads floats of the same size.
// kernel: twice
// grid: 1
// block: 8
// arg: int32[8] arange
// expect: argument
// says: int32
extern "C" __global__ void twice(float* values)
{
    values[threadIdx.x] *= 2.0f;
}
