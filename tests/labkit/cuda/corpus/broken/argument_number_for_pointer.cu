// about: A number where the kernel takes an array.
// kernel: twice
// grid: 1
// block: 8
// arg: float32 1.0
// expect: argument
// says: values
extern "C" __global__ void twice(float* values)
{
    values[threadIdx.x] *= 2.0f;
}
