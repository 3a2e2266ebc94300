// about: Zero over zero, made an integer.
// kernel: divide
// grid: 1
// block: 1
// arg: float32[1] zeros
// arg: int32[1] zeros
// expect: float_to_integer
extern "C" __global__ void divide(const float* x, int* y)
{
    y[0] = (int)(x[0] / x[0]);  // HERE
}
