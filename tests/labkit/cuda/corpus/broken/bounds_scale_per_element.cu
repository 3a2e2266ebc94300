// about: One scale per element is read; there is one per 16.
// kernel: dequantise
// grid: 1
// block: 64
// arg: int8[64] integers(5, -8, 8)
// arg: float32[4] ones
// arg: float32[64] zeros
// expect: out_of_bounds
// says: scales[
extern "C" __global__ void dequantise(const signed char* codes, const float* scales, float* y)
{
    int i = threadIdx.x;
    float step = scales[i];  // HERE
    y[i] = codes[i] * step;
}
