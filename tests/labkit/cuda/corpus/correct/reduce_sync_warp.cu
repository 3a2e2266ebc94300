// about: The last 32 threads go on without block barriers, with a warp barrier between reading and writing.
// kernel: block_sum
// grid: 2
// block: 128
// arg: int32[2,128] integers(7, -1000, 1000)
// arg: int32[2] zeros
// equals: total = x.sum(axis=1)
extern "C" __global__ void block_sum(const int* x, int* total)
{
    __shared__ int partial[128];
    int t = threadIdx.x;
    partial[t] = x[blockIdx.x * 128 + t];
    __syncthreads();
    if (t < 64) partial[t] += partial[t + 64];
    __syncthreads();
    if (t < 32) {
        int sum = partial[t] + partial[t + 32];
        for (int distance = 16; distance > 0; distance >>= 1) {
            partial[t] = sum;
            __syncwarp();
            if (t < distance) sum += partial[t + distance];
            __syncwarp();
        }
        if (t == 0) total[blockIdx.x] = sum;
    }
}
