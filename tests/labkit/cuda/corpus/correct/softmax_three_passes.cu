// about: Softmax of a row by maximum, sum and division; one shared array serves both reductions, so a barrier stands before its second use.
// kernel: softmax
// grid: 3
// block: 64
// arg: float32[3,100] normal(67)
// arg: float32[3,100] zeros
// arg: int32 100
// let: weight = np.exp(x - x.max(axis=1, keepdims=True))
// close: y = weight / weight.sum(axis=1, keepdims=True)
template <bool IsMax> __device__ float block_reduce(float value, float* shared)
{
    __syncthreads();                       // the last use of the array is over
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            float other = shared[threadIdx.x + half];
            shared[threadIdx.x] = IsMax ? fmaxf(shared[threadIdx.x], other) : shared[threadIdx.x] + other;
        }
        __syncthreads();
    }
    return shared[0];
}

extern "C" __global__ void softmax(const float* x, float* y, int n)
{
    __shared__ float shared[64];
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float largest = -1e30f, sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) largest = fmaxf(largest, x[i]);
    largest = block_reduce<true>(largest, shared);
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[i] - largest);
    sum = block_reduce<false>(sum, shared);
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = expf(x[i] - largest) / sum;
}
