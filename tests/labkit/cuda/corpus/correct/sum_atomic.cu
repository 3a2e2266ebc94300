// about: One atomic per block onto a global sum, after a reduction in shared memory by shared atomics.
// kernel: grid_sum
// grid: 4
// block: 48
// arg: int32[180] integers(11, 0, 1000)
// arg: int32[1] zeros
// arg: int32 180
// equals: total = x.sum(keepdims=True)
extern "C" __global__ void grid_sum(const int* x, int* total, int n)
{
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&sum, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(total, sum);
}
