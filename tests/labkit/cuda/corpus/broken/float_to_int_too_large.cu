// about: A quotient that no int can hold.
// kernel: divide
// grid: 1
// block: 8
// arg: float32[8] normal(40)
// arg: int32[8] zeros
// expect: float_to_integer
extern "C" __global__ void divide(const float* x, int* y)
{
    y[threadIdx.x] = (int)(x[threadIdx.x] / 1e-12f);  // HERE
}
