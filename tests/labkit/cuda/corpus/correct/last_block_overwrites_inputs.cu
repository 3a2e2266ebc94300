// about: Every block reads all of the input; the last one to have done so writes over it. Fences order the reads too.
// kernel: normalise
// grid: 4
// block: 64
// arg: float32[64] arange
// arg: float32[4] zeros
// arg: uint32[1] zeros
// equals: sums = np.array([x[b::4].sum() for b in range(4)])
// equals: x = np.ones(64, np.float32) * x.sum()
extern "C" __global__ void normalise(float* x, float* sums, unsigned int* n_done)
{
    __shared__ float total;
    __shared__ bool is_last;
    const int t = threadIdx.x;
    if (t == 0) total = 0.0f;
    __syncthreads();
    const float mine = x[t];
    if (t % 4 == blockIdx.x) atomicAdd(&total, mine);
    __syncthreads();
    if (t == 0) sums[blockIdx.x] = total;
    __threadfence();
    __syncthreads();
    if (t == 0) is_last = atomicAdd(n_done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (is_last) x[t] = sums[0] + sums[1] + sums[2] + sums[3];
}
