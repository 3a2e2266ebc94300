// about: Pointers to the middle of local, shared and global arrays, used with negative indices.
// kernel: window
// grid: 2
// block: 32
// arg: float32[80] arange
// arg: float32[64] zeros
// equals: y = np.array([x[32 * (i // 32) + i % 32: 32 * (i // 32) + i % 32 + 17].sum() for i in range(64)], np.float32)
extern "C" __global__ void window(const float* x, float* y)
{
    __shared__ float padded[48];
    float weights[17];
    float* centre = weights + 8;
    float* middle = padded + 8;
    const float* from = x + 32 * blockIdx.x + 8;
    for (int k = -8; k <= 8; ++k) centre[k] = 1.0f;
    const int t = threadIdx.x;
    middle[t] = from[t];
    if (t < 8) middle[t - 8] = from[t - 8];
    if (t >= 24) middle[t + 8] = from[t + 8];
    __syncthreads();
    float sum = 0.0f;
    for (int k = -8; k <= 8; ++k) sum += centre[k] * middle[t + k];
    y[32 * blockIdx.x + t] = sum;
}
