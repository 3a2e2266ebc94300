// about: A function template with shared memory of its own, made twice, with different types and sizes, in one kernel.
// kernel: both
// grid: 2
// block: 64
// arg: float32[128] arange
// arg: int32[128] integers(5, 0, 50)
// arg: float32[128] zeros
// arg: int32[128] zeros
// equals: y = x.reshape(2, 64)[:, ::-1].ravel()
// equals: m = np.repeat(np.maximum.reduceat(n, [0, 16, 32, 48, 64, 80, 96, 112]), 16)
template <class T, int width>
__device__ T mirrored(T value)
{
    __shared__ T slots[width];
    slots[threadIdx.x] = value;
    __syncthreads();
    T other = slots[width - 1 - threadIdx.x];
    __syncthreads();
    return other;
}

template <class T, int n_groups>
__device__ T group_maximum(T value)
{
    __shared__ T best[n_groups];
    const int length = blockDim.x / n_groups, group = threadIdx.x / length;
    if (threadIdx.x % length == 0) best[group] = value;
    __syncthreads();
    atomicMax(&best[group], value);
    __syncthreads();
    return best[group];
}

extern "C" __global__ void both(const float* x, const int* n, float* y, int* m)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = mirrored<float, 64>(x[i]);
    m[i] = mirrored<int, 64>(mirrored<int, 64>(group_maximum<int, 4>(n[i])));
}
