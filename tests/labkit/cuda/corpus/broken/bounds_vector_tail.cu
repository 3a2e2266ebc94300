// about: A float4 load that begins inside the array and ends outside.
// kernel: copy
// grid: 1
// block: 8
// arg: float32[30] normal(6)
// arg: float32[32] zeros
// expect: out_of_bounds
// says: x
extern "C" __global__ void copy(const float4* x, float4* y)
{
    float4 four = x[threadIdx.x];  // HERE
    y[threadIdx.x] = four;
}
