// about: Online softmax over tiles of 16 tokens in shared memory; four warps, each with its own phase, barriers between them.
// kernel: attention
// grid: 3
// block: 64
// arg: float32[3,32] normal(95)
// arg: uint8[3,37,16] integers(96, 0, 256)
// arg: float32[3,37,2] uniform(97)
// arg: uint8[3,37,16] integers(98, 0, 256)
// arg: float32[3,37,2] uniform(99)
// arg: float32[3,32] zeros
// arg: int32 37
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

#define TILE 16
#define D 32
extern "C" __global__ void attention(const float* q, const unsigned char* k, const float* ks, const unsigned char* v,
                                     const float* vs, float* out, int T, float scale)
{
    __shared__ float keys[TILE][D + 1], values[TILE][D], logit[TILE], query[D];
    __shared__ float largest, sum, correction;
    int head = blockIdx.x, t = threadIdx.x, lane = t % 32, warp = t / 32;
    if (t < D) query[t] = q[head * D + t];
    if (t == 0) {
        largest = __int_as_float(0xff800000);
        sum = 0.0f;
    }
    float result = 0.0f;
    __syncthreads();
    for (int base = 0; base < T; base += TILE) {
        for (int i = t; i < TILE * D; i += blockDim.x) {
            int token = base + i / D, element = (head * T + token) * D + i % D;
            keys[i / D][i % D] = token < T ? read(k, ks, element) : 0.0f;
            values[i / D][i % D] = token < T ? read(v, vs, element) : 0.0f;
        }
        __syncthreads();
        for (int r = warp; r < TILE; r += 2) {
            float dot = query[lane] * keys[r][lane];
            for (int d = 16; d > 0; d >>= 1) dot += __shfl_xor_sync(0xffffffffu, dot, d);
            if (lane == 0) logit[r] = base + r < T ? dot * scale : __int_as_float(0xff800000);
        }
        __syncthreads();
        if (t == 0) {
            float before = largest, added = 0.0f;
            for (int r = 0; r < TILE; ++r) largest = fmaxf(largest, logit[r]);
            correction = expf(before - largest);
            for (int r = 0; r < TILE; ++r) added += logit[r] = expf(logit[r] - largest);
            sum = sum * correction + added;
        }
        __syncthreads();
        if (t < D) {
            result *= correction;
            for (int r = 0; r < TILE; ++r) result += logit[r] * values[r][t];
        }
        __syncthreads();
    }
    if (t < D) out[head * D + t] = result / sum;
}
