// about: The column that only pads is read as if it held something.
// kernel: row_sums
// grid: 1
// block: 8
// arg: int32[8,8] arange
// arg: int32[8] zeros
// expect: uninitialised
// says: tile
extern "C" __global__ void row_sums(const int* x, int* y)
{
    __shared__ int tile[8][9];
    for (int r = 0; r < 8; ++r) tile[r][threadIdx.x] = x[r * 8 + threadIdx.x];
    __syncthreads();
    int sum = 0;
    for (int c = 0; c < 9; ++c)
        sum += tile[threadIdx.x][c];  // HERE
    y[threadIdx.x] = sum;
}
