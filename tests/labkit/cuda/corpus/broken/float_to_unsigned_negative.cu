// about: A negative float as an unsigned char.
// kernel: quantise
// grid: 1
// block: 1
// arg: float32[1] ones
// arg: uint8[1] zeros
// expect: float_to_integer
extern "C" __global__ void quantise(const float* x, unsigned char* y)
{
    y[0] = (unsigned char)(-3.0f * x[0]);  // HERE
}
