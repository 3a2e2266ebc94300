// about: An atomic adds to bins that hold whatever was there.
// kernel: histogram
// grid: 1
// block: 32
// arg: int32[32] integers(31, 0, 4)
// arg: int32[4] zeros
// expect: uninitialised
// says: bins
extern "C" __global__ void histogram(const int* x, int* counts)
{
    __shared__ int bins[4];
    atomicAdd(&bins[x[threadIdx.x]], 1);  // HERE
    __syncthreads();
    if (threadIdx.x < 4) counts[threadIdx.x] = bins[threadIdx.x];
}
