// about: 8-bit quantisation without a clamp: 200 is no signed char.
// kernel: quantise
// grid: 1
// block: 1
// arg: float32[1] ones
// arg: int8[1] zeros
// expect: float_to_integer
extern "C" __global__ void quantise(const float* x, signed char* y)
{
    y[0] = (signed char)(x[0] * 200.0f);  // HERE
}
