// about: Each warp takes every fourth token with a softmax of its own in registers; the four are merged through shared memory.
// kernel: attention
// grid: 2
// block: 128
// arg: float32[2,32] normal(95)
// arg: uint8[2,41,16] integers(96, 0, 256)
// arg: float32[2,41,2] uniform(97)
// arg: uint8[2,41,16] integers(98, 0, 256)
// arg: float32[2,41,2] uniform(99)
// arg: float32[2,32] zeros
// arg: int32 41
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
    __shared__ float part[4][32], part_largest[4], part_sum[4];
    int head = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float query = q[head * 32 + lane] * scale, largest = __int_as_float(0xff800000), sum = 0.0f, result = 0.0f;
    for (int t = warp; t < T; t += 4) {
        int i = (head * T + t) * 32 + lane;
        float logit = query * read(k, ks, i);
        for (int d = 16; d > 0; d >>= 1) logit += __shfl_xor_sync(0xffffffffu, logit, d);
        float now = fmaxf(largest, logit), correction = expf(largest - now), weight = expf(logit - now);
        sum = sum * correction + weight;
        result = result * correction + weight * read(v, vs, i);
        largest = now;
    }
    part[warp][lane] = result;
    if (lane == 0) {
        part_largest[warp] = largest;
        part_sum[warp] = sum;
    }
    __syncthreads();
    if (warp > 0) return;
    float all = fmaxf(fmaxf(part_largest[0], part_largest[1]), fmaxf(part_largest[2], part_largest[3]));
    sum = result = 0.0f;
    for (int w = 0; w < 4; ++w) {
        float factor = expf(part_largest[w] - all);
        sum += part_sum[w] * factor;
        result += part[w][lane] * factor;
    }
    out[head * 32 + lane] = result / sum;
}
