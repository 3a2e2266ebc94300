// about: float4 for the whole quarters, single floats for the ragged rest.
// kernel: copy
// grid: 2
// block: 16
// arg: float32[103] normal(62)
// arg: float32[103] zeros
// arg: int32 103
// equals: y = x
extern "C" __global__ void copy(const float* __restrict__ x, float* __restrict__ y, int n)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    for (int i = t; i < n / 4; i += stride)
        reinterpret_cast<float4*>(y)[i] = __ldg(reinterpret_cast<const float4*>(x) + i);
    for (int i = n / 4 * 4 + t; i < n; i += stride) y[i] = x[i];
}
