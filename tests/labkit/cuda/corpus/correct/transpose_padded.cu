// about: A tile with one column more than it needs, so that columns fall into different banks; 8 rows of threads move 32 rows.
// kernel: transpose
// grid: 2 2
// block: 32 8
// arg: float32[40,50] normal(26)
// arg: float32[50,40] zeros
// arg: int32 40
// arg: int32 50
// equals: y = x.T
extern "C" __global__ void transpose(const float* x, float* y, int rows, int columns)
{
    __shared__ float tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        if (r + i < rows && c < columns) tile[threadIdx.y + i][threadIdx.x] = x[(r + i) * columns + c];
    __syncthreads();
    int out_c = blockIdx.y * 32 + threadIdx.x, out_r = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        if (out_r + i < columns && out_c < rows) y[(out_r + i) * rows + out_c] = tile[threadIdx.x][threadIdx.y + i];
}
