// about: NumPy's default is float64; the kernel reads floats.
// kernel: twice
// grid: 1
// block: 8
// arg: float64[8] normal(42)
// expect: argument
// says: float64
extern "C" __global__ void twice(float* values)
{
    values[threadIdx.x] *= 2.0f;
}
