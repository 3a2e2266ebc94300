// about: Four query heads share one KV head: a block reads each token once for all four, a thread per query head and element.
// kernel: attention
// grid: 2
// block: 32 4
// arg: float32[8,32] normal(95)
// arg: uint8[2,21,16] integers(96, 0, 256)
// arg: float32[2,21,2] uniform(97)
// arg: uint8[2,21,16] integers(98, 0, 256)
// arg: float32[2,21,2] uniform(99)
// arg: float32[8,32] zeros
// arg: int32 21
// arg: float32 0.1
// let: expand = lambda packed, scales: given.decode_e2m1(given.unpack_nibbles(packed)) * np.repeat(scales, 16, axis=-1)
// let: keys = np.repeat(expand(k, ks), 4, axis=0)
// let: values = np.repeat(expand(v, vs), 4, axis=0)
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
    __shared__ float key[32], value[32];
    int kv_head = blockIdx.x, lane = threadIdx.x, head = kv_head * blockDim.y + threadIdx.y;
    float query = q[head * 32 + lane], largest = -3.0e38f, sum = 0.0f, result = 0.0f;
    for (int t = 0; t < T; ++t) {
        int i = (kv_head * T + t) * 32 + lane;
        if (threadIdx.y == 0) key[lane] = read(k, ks, i);
        if (threadIdx.y == 1) value[lane] = read(v, vs, i);
        __syncthreads();
        float logit = query * key[lane];
        for (int d = 16; d > 0; d >>= 1) logit += __shfl_xor_sync(0xffffffffu, logit, d);
        logit *= scale;
        if (logit > largest) {
            float correction = expf(largest - logit);
            sum *= correction;
            result *= correction;
            largest = logit;
        }
        float weight = expf(logit - largest);
        sum += weight;
        result += weight * value[lane];
        __syncthreads();
    }
    out[head * 32 + lane] = result / sum;
}
