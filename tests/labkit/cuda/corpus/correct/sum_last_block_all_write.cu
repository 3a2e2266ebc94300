// about: Every thread of a block writes before its last-block ticket is taken: the fence of each comes before the barrier before the ticket.
// kernel: column_sum
// grid: 5
// block: 40
// arg: float32[5,40] integers(10, -100, 100)
// arg: float32[5,40] zeros
// arg: float32[40] zeros
// equals: total = 2 * x.sum(axis=0)
__device__ unsigned int finished = 0;

extern "C" __global__ void column_sum(const float* x, float* doubled, float* total)
{
    __shared__ unsigned int ticket;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    doubled[i] = 2.0f * x[i];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) ticket = atomicAdd(&finished, 1u);
    __syncthreads();
    if (ticket != gridDim.x - 1) return;
    __threadfence();
    float sum = 0.0f;
    for (int b = 0; b < gridDim.x; ++b) sum += doubled[b * blockDim.x + threadIdx.x];
    total[threadIdx.x] = sum;
    if (threadIdx.x == 0) finished = 0;
}
