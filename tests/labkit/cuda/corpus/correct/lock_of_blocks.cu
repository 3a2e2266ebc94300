// about: A lock from atomicCAS and atomicExch, taken by one thread of each block, guards plain reads and writes.
// kernel: guarded_sums
// grid: 8
// block: 32
// arg: float32[8,32] integers(13, -100, 100)
// arg: float32[33] zeros
// arg: int32[1] zeros
// equals: sums = np.append(x.sum(axis=0), np.float32(8))
__device__ void acquire(int* lock)
{
    while (atomicCAS(lock, 0, 1) != 0) { }
    __threadfence();
}

__device__ void release(int* lock)
{
    __threadfence();
    atomicExch(lock, 0);
}

extern "C" __global__ void guarded_sums(const float* x, float* sums, int* lock)
{
    if (threadIdx.x == 0) acquire(lock);
    __syncthreads();
    sums[threadIdx.x] += x[blockIdx.x * blockDim.x + threadIdx.x];
    if (threadIdx.x == 0) sums[32] += 1.0f;
    __syncthreads();
    if (threadIdx.x == 0) release(lock);
}
