// about: Bins in shared memory are counted up without atomics.
// kernel: histogram
// grid: 1
// block: 64
// arg: int32[64] integers(18, 0, 4)
// arg: int32[4] zeros
// expect: race
// says: bins
extern "C" __global__ void histogram(const int* x, int* counts)
{
    __shared__ int bins[4];
    if (threadIdx.x < 4) bins[threadIdx.x] = 0;
    __syncthreads();
    bins[x[threadIdx.x]]++;  // HERE
    __syncthreads();
    if (threadIdx.x < 4) counts[threadIdx.x] = bins[threadIdx.x];
}
