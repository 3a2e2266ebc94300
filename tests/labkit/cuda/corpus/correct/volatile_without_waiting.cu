// about: Volatile shared and global memory without a wait: barriers order it as they order everything.
// kernel: smooth
// grid: 2
// block: 64
// arg: float32[128] arange
// arg: float32[128] zeros
// equals: y = np.concatenate([np.convolve(np.concatenate([[b[0]], b, [b[-1]]]), np.ones(3), "valid") for b in x.reshape(2, 64)])
extern "C" __global__ void smooth(const volatile float* x, volatile float* y)
{
    volatile __shared__ float values[66];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + 1;
    values[t] = x[i];
    if (threadIdx.x == 0) values[0] = x[i];
    if (threadIdx.x == 63) values[65] = x[i];
    __syncthreads();
    y[i] = values[t - 1] + values[t];
    y[i] = y[i] + values[t + 1];
}
