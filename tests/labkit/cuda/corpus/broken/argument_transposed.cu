// about: A transposed view: its elements do not lie in the order of its axes.
// kernel: twice
// grid: 1
// block: 24
// arg: float32[4,6] normal(44) transposed
// expect: argument
// says: contiguous
extern "C" __global__ void twice(float* values)
{
    values[threadIdx.x] *= 2.0f;
}
