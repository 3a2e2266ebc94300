// about: One block per head: all logits in dynamic shared memory, then the softmax, then the values.
// kernel: attention
// grid: 2
// block: 32
// shared: 180
// arg: float32[2,32] normal(95)
// arg: uint8[2,45,16] integers(96, 0, 256)
// arg: float32[2,45,2] uniform(97)
// arg: uint8[2,45,16] integers(98, 0, 256)
// arg: float32[2,45,2] uniform(99)
// arg: float32[2,32] zeros
// arg: int32 45
// arg: float32 0.1
// let: expand = lambda packed, scales: given.decode_e2m1(given.unpack_nibbles(packed)) * np.repeat(scales, 16, axis=-1)
// let: keys = np.repeat(expand(k, ks), 1, axis=0)
// let: values = np.repeat(expand(v, vs), 1, axis=0)
// let: logits = np.einsum("hd,htd->ht", q.astype(float), keys.astype(float)) * scale
// let: weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
// close: out = np.einsum("ht,htd->hd", weights / weights.sum(axis=-1, keepdims=True), values.astype(float))
__device__ float decode_e2m1(unsigned int code)
{
    const float magnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

__device__ float read(const unsigned char* packed, const float* scales, int i)
{
    return decode_e2m1(packed[i / 2] >> 4 * (i & 1) & 15) * scales[i / 16];
}

extern "C" __global__ void attention(const float* q, const unsigned char* k, const float* ks, const unsigned char* v,
                                     const float* vs, float* out, int T, float scale)
{
    extern __shared__ float weight[];
    int head = blockIdx.x, lane = threadIdx.x, start = head * T * 32;
    for (int t = lane; t < T; t += 32) {
        float dot = 0.0f;
        for (int d = 0; d < 32; ++d) dot += q[head * 32 + d] * read(k, ks, start + t * 32 + d);
        weight[t] = dot * scale;
    }
    __syncthreads();
    float largest = -1e30f, sum = 0.0f, result = 0.0f;
    for (int t = 0; t < T; ++t) largest = fmaxf(largest, weight[t]);
    for (int t = 0; t < T; ++t) {
        float w = expf(weight[t] - largest);
        sum += w;
        result += w * read(v, vs, start + t * 32 + lane);
    }
    out[head * 32 + lane] = result / sum;
}
