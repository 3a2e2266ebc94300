// about: An atomic on a bin that the shared histogram does not have.
// kernel: histogram
// grid: 1
// block: 32
// arg: uint8[32] constant(16)
// arg: int32[16] zeros
// expect: out_of_bounds
// says: 16
extern "C" __global__ void histogram(const unsigned char* x, int* counts)
{
    __shared__ int bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[x[threadIdx.x]], 1);  // HERE
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x] = bins[threadIdx.x];
}
