// about: A float4 load that begins at element 1.
// kernel: load
// grid: 1
// block: 4
// arg: float32[20] normal(34)
// arg: float32[4,4] zeros
// expect: misaligned
extern "C" __global__ void load(const float* x, float4* y)
{
    y[threadIdx.x] = *(const float4*)(x + 1 + 4 * threadIdx.x);  // HERE
}
