// about: A two-dimensional shared array filled through a pointer to its first element, row after row.
// kernel: copy_tile
// grid: 2
// block: 50
// arg: int32[2,10,15] arange
// arg: int32[2,15,10] zeros
// equals: y = x.transpose(0, 2, 1)
extern "C" __global__ void copy_tile(const int* x, int* y)
{
    __shared__ int tile[10][15];
    int* flat = &tile[0][0];
    int* const end = flat + 150;
    const int* from = x + 150 * blockIdx.x;
    for (int* to = flat + threadIdx.x; to < end; to += blockDim.x) *to = from[to - flat];
    __syncthreads();
    for (int i = threadIdx.x; i < 150; i += blockDim.x) y[150 * blockIdx.x + i] = tile[i % 10][i / 10];
}
