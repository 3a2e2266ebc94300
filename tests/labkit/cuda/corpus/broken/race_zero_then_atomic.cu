// about: The barrier between setting the bins to zero and counting in them is missing.
// kernel: histogram
// grid: 1
// block: 64
// arg: int32[64] integers(81, 0, 4)
// arg: int32[4] zeros
// expect: race or uninitialised
// says: bins
extern "C" __global__ void histogram(const int* x, int* counts)
{
    __shared__ int bins[4];
    if (threadIdx.x < 4)
        bins[threadIdx.x] = 0;  // HERE
    atomicAdd(&bins[x[threadIdx.x]], 1);  // HERE
    __syncthreads();
    if (threadIdx.x < 4) counts[threadIdx.x] = bins[threadIdx.x];
}
