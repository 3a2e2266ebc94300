// about: Half precision where the kernel reads floats.
// kernel: twice
// grid: 1
// block: 8
// arg: float16[8] normal(43)
// expect: argument
// says: float16
extern "C" __global__ void twice(float* values)
{
    values[threadIdx.x] *= 2.0f;
}
