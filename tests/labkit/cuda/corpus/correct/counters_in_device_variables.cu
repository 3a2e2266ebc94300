// about: Atomics on __device__ variables, and a last block that reads what all blocks left in one, behind fences.
// kernel: total
// grid: 5
// block: 32
// arg: int32[160] integers(12, 0, 9)
// arg: int32[2] zeros
// equals: y = np.array([x.sum(), x.max()])
__device__ unsigned int n_done = 0;
__device__ int largest = -1;
__device__ int partial_sums[8];

extern "C" __global__ void total(const int* x, int* y)
{
    __shared__ bool is_last;
    const int value = x[blockIdx.x * 32 + threadIdx.x];
    const int sum = __reduce_add_sync(0xffffffffu, value);
    atomicMax(&largest, value);
    if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(&n_done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!is_last || threadIdx.x > 0) return;
    int all = 0;
    for (int i = 0; i < gridDim.x; ++i) all += partial_sums[i];
    y[0] = all;
    y[1] = atomicMax(&largest, -1);
    n_done = 0;
}
