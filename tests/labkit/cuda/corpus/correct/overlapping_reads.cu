// about: Every thread reads all of a row that others read too, and one array is passed twice for reading.
// kernel: pairwise
// grid: 2
// block: 16
// arg: int32[32] integers(80, 0, 1000)
// arg: same(0)
// arg: int32[32] zeros
// equals: rank = (x[:, None] > x[None, :]).sum(axis=1)
extern "C" __global__ void pairwise(const int* x, const int* others, int* rank)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, below = 0;
    for (int j = 0; j < 32; ++j) below += x[i] > others[j];
    rank[i] = below;
}
