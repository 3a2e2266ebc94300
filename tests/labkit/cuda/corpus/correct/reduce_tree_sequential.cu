// about: Sequential addressing, dynamic shared memory, each thread first adds what lies a grid apart.
// kernel: grid_sum
// grid: 3
// block: 128
// shared: 512
// arg: float32[1000] integers(3, -100, 100)
// arg: float32[3] zeros
// arg: uint32 1000
// let: padded = np.concatenate([x, np.zeros(1152 - 1000, np.float32)]).reshape(3, 3, 128)
// equals: total = padded.sum(axis=(0, 2))
extern "C" __global__ void grid_sum(const float* x, float* total, unsigned int n)
{
    extern __shared__ float partial[];
    float sum = 0.0f;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int half = blockDim.x >> 1; half > 0; half >>= 1) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) total[blockIdx.x] = partial[0];
}
