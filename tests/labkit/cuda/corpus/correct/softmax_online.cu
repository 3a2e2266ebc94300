// about: One pass over the row keeps a running maximum and sum; pairs of them are merged by shuffles.
// kernel: softmax
// grid: 4
// block: 32
// arg: float32[4,75] normal(68)
// arg: float32[4,75] zeros
// arg: int32 75
// let: weight = np.exp(x - x.max(axis=1, keepdims=True))
// close: y = weight / weight.sum(axis=1, keepdims=True)
#define NEGATIVE_INFINITY __int_as_float(0xff800000)
__device__ void merge(float& largest, float& sum, float other_largest, float other_sum)
{
    float both = fmaxf(largest, other_largest);
    if (both == NEGATIVE_INFINITY) return;
    sum = sum * expf(largest - both) + other_sum * expf(other_largest - both);
    largest = both;
}

extern "C" __global__ void softmax(const float* x, float* y, int n)
{
    const float* row = x + blockIdx.x * n;
    float largest = NEGATIVE_INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) merge(largest, sum, row[i], 1.0f);
    for (int distance = 16; distance > 0; distance >>= 1) {
        float other_largest = __shfl_xor_sync(0xffffffffu, largest, distance);
        float other_sum = __shfl_xor_sync(0xffffffffu, sum, distance);
        merge(largest, sum, other_largest, other_sum);
    }
    for (int i = threadIdx.x; i < n; i += 32) y[blockIdx.x * n + i] = expf(row[i] - largest) / sum;
}
