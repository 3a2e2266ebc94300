// about: One warp per row, sum by __shfl_down_sync; only lane 0 holds the whole sum.
// kernel: row_sum
// grid: 2
// block: 32 4
// arg: float32[7,50] integers(4, -9, 9)
// arg: float32[7] zeros
// arg: int32 7
// arg: int32 50
// equals: total = x.sum(axis=1)
extern "C" __global__ void row_sum(const float* x, float* total, int rows, int columns)
{
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;                       // whole warps leave
    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += 32) sum += x[row * columns + c];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (threadIdx.x == 0) total[row] = sum;
}
