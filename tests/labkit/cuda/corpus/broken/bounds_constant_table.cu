// about: A code with its sign bit indexes a table of eight magnitudes.
// kernel: decode
// grid: 1
// block: 16
// arg: float32[16] zeros
// expect: out_of_bounds
// says: 8
__constant__ float MAGNITUDES[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};

extern "C" __global__ void decode(float* y)
{
    int code = threadIdx.x;
    y[code] = code < 9 ? MAGNITUDES[code] : 0.0f;  // HERE
}
