// about: The second kernel of a split: one warp per head merges parts, some of which saw no token at all.
// kernel: combine
// grid: 3
// block: 32
// arg: float32[3,5,32] normal(100)
// arg: float32[3,5] normal(101)
// arg: float32[3,5] uniform(102)
// arg: float32[3,32] zeros
// arg: int32 5
// let: seen = np.arange(5) != 2
// let: factor = np.exp(largest[:, seen] - largest[:, seen].max(axis=1, keepdims=True))
// close: out = np.einsum("hp,hpd->hd", factor, part[:, seen]) / (factor * (sum[:, seen] + 1)).sum(axis=1, keepdims=True)
extern "C" __global__ void combine(const float* part, const float* largest, const float* sum, float* out, int n_parts)
{
    int head = blockIdx.x, lane = threadIdx.x;
    const float nothing = __int_as_float(0xff800000);
    float own = lane < n_parts && lane != 2 ? largest[head * n_parts + lane] : nothing, all = own;
    for (int d = 16; d > 0; d >>= 1) all = fmaxf(all, __shfl_xor_sync(0xffffffffu, all, d));
    float factor = own == nothing ? 0.0f : expf(own - all);
    float weight = lane < n_parts ? factor * (sum[head * n_parts + lane] + 1.0f) : 0.0f;
    for (int d = 16; d > 0; d >>= 1) weight += __shfl_xor_sync(0xffffffffu, weight, d);
    float result = 0.0f;
    for (int p = 0; p < n_parts; ++p) result += __shfl_sync(0xffffffffu, factor, p) * part[(head * n_parts + p) * 32 + lane];
    out[head * 32 + lane] = result / weight;
}
