// about: The context is split over blocks; the last block of a head to finish merges the parts that all of them left in global memory.
// kernel: attention
// grid: 2 3
// block: 32
// arg: float32[2,32] normal(95)
// arg: uint8[2,50,16] integers(96, 0, 256)
// arg: float32[2,50,2] uniform(97)
// arg: uint8[2,50,16] integers(98, 0, 256)
// arg: float32[2,50,2] uniform(99)
// arg: float32[2,32] zeros
// arg: int32 50
// arg: float32 0.1
// arg: float32[2,3,34] zeros
// arg: uint32[2] zeros
// equals: tickets = np.array([3, 3], np.uint32)
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
                                     const float* vs, float* out, int T, float scale, float* parts, unsigned int* tickets)
{
    int head = blockIdx.x, part = blockIdx.y, n_parts = gridDim.y, lane = threadIdx.x;
    int length = (T + n_parts - 1) / n_parts, end = min(T, (part + 1) * length);
    float query = q[head * 32 + lane] * scale, largest = __int_as_float(0xff800000), sum = 0.0f, result = 0.0f;
    for (int t = part * length; t < end; ++t) {
        int i = (head * T + t) * 32 + lane;
        float logit = query * read(k, ks, i);
        for (int d = 16; d > 0; d >>= 1) logit += __shfl_xor_sync(0xffffffffu, logit, d);
        float now = fmaxf(largest, logit), correction = expf(largest - now), weight = expf(logit - now);
        sum = sum * correction + weight;
        result = result * correction + weight * read(v, vs, i);
        largest = now;
    }
    float* mine = parts + (head * n_parts + part) * 34;
    mine[2 + lane] = result;
    if (lane == 0) mine[0] = largest;
    if (lane == 1) mine[1] = sum;
    __threadfence();
    __syncwarp();
    unsigned int ticket = 0;
    if (lane == 0) ticket = atomicAdd(&tickets[head], 1u);
    ticket = __shfl_sync(0xffffffffu, ticket, 0);
    if (ticket != n_parts - 1) return;
    __threadfence();
    __syncwarp();                          // a shuffle orders nothing: all lanes see what the first has seen
    const volatile float* all = parts + head * n_parts * 34;
    float most = __int_as_float(0xff800000);
    for (int p = 0; p < n_parts; ++p) most = fmaxf(most, all[p * 34]);
    sum = result = 0.0f;
    for (int p = 0; p < n_parts; ++p) {
        float factor = expf(all[p * 34] - most);
        sum += all[p * 34 + 1] * factor;
        result += all[p * 34 + 2 + lane] * factor;
    }
    out[head * 32 + lane] = result / sum;
}
