// about: Root mean square of a row by float4 loads, a broadcast through shared memory, __restrict__ and rsqrtf.
// kernel: rms_norm
// grid: 2
// block: 32
// arg: float32[2,256] normal(69)
// arg: float32[256] uniform(70)
// arg: float32[2,256] zeros
// close: y = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-5)) * gain
extern "C" __global__ void rms_norm(const float4* __restrict__ x, const float4* __restrict__ gain, float4* __restrict__ y)
{
    __shared__ float inverse;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < 64; i += 32) {
        float4 v = x[blockIdx.x * 64 + i];
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
    if (threadIdx.x == 0) inverse = rsqrtf(sum / 256.0f + 1e-5f);
    __syncwarp();
    for (int i = threadIdx.x; i < 64; i += 32) {
        float4 v = x[blockIdx.x * 64 + i], g = gain[i];
        y[blockIdx.x * 64 + i] = {v.x * inverse * g.x, v.y * inverse * g.y, v.z * inverse * g.z, v.w * inverse * g.w};
    }
}
