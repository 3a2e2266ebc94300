// about: float4 and uint2 views of plain arrays, in registers, shared and global memory, with a scalar tail.
// kernel: scale
// grid: 2
// block: 32
// arg: float32[203] normal(7)
// arg: float32[203] zeros
// arg: int32 203
// equals: y = x * np.float32(2)
extern "C" __global__ void scale(const float* __restrict__ x, float* __restrict__ y, int n)
{
    __shared__ __align__(16) float staged[128];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n_vectors = n / 4;
    float4* slots = reinterpret_cast<float4*>(staged);
    if (i < n_vectors) {
        float4 v = __ldg(reinterpret_cast<const float4*>(x) + i);
        float parts[4] = {v.x, v.y, v.z, v.w};
        for (int k = 0; k < 4; ++k) parts[k] *= 2.0f;
        slots[threadIdx.x] = make_float4(parts[0], parts[1], parts[2], parts[3]);
        const uint2* words = reinterpret_cast<const uint2*>(&slots[threadIdx.x]);
        const uint2 low = words[0], high = words[1];
        reinterpret_cast<uint4*>(y)[i] = make_uint4(low.x, low.y, high.x, high.y);
    }
    const int tail = 4 * n_vectors + i;
    if (tail < n) y[tail] = 2.0f * x[tail];
}
