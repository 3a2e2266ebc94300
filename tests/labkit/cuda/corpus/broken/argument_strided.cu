// about: Every second row of an array.
// kernel: twice
// grid: 1
// block: 8
// arg: float32[4,4] normal(45) strided
// expect: argument
// says: contiguous
extern "C" __global__ void twice(float* values)
{
    values[threadIdx.x] *= 2.0f;
}
