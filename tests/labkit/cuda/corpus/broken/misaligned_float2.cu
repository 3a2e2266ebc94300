// about: Pairs of floats that begin at an odd element.
// kernel: store
// grid: 1
// block: 4
// arg: float32[9] zeros
// expect: misaligned
extern "C" __global__ void store(float* y)
{
    float2* pairs = (float2*)(y + 1);
    pairs[threadIdx.x] = make_float2(1.0f, 2.0f);  // HERE
}
