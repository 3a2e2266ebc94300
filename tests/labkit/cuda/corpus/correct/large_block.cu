// about: A block of 1,024 threads: as many as a block may have.
// kernel: block_sum
// grid: 1
// block: 1024
// arg: int32[1024] integers(71, -1000, 1000)
// arg: int32[1] zeros
// equals: total = x.sum(keepdims=True)
extern "C" __global__ void block_sum(const int* x, int* total)
{
    __shared__ int partial[1024];
    partial[threadIdx.x] = x[threadIdx.x];
    for (int half = 512; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *total = partial[0];
}
