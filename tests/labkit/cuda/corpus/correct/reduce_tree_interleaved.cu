// about: The first reduction of every course: strides double, a barrier after each step.
// kernel: row_sum
// grid: 5
// block: 64
// arg: float32[5,64] integers(1, -100, 100)
// arg: float32[5] zeros
// equals: total = x.sum(axis=1)
extern "C" __global__ void row_sum(const float* x, float* total)
{
    __shared__ float partial[64];
    int t = threadIdx.x;
    partial[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0) partial[t] += partial[t + stride];
        __syncthreads();
    }
    if (t == 0) total[blockIdx.x] = partial[0];
}
