// about: Bins in shared memory, zeroed and emptied by strided loops, filled by atomics.
// kernel: histogram
// grid: 3
// block: 50
// arg: uint8[1000] integers(32, 0, 256)
// arg: uint32[256] zeros
// arg: int32 1000
// equals: counts = np.bincount(x, minlength=256).astype(np.uint32)
extern "C" __global__ void histogram(const unsigned char* x, unsigned int* counts, int n)
{
    __shared__ unsigned int bins[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) bins[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&bins[x[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (bins[b]) atomicAdd(&counts[b], bins[b]);
}
