// about: One column too far in a shared row: still inside the array, but in the next row.
// kernel: shift
// grid: 1
// block: 8 8
// arg: int32[8,8] arange
// expect: out_of_bounds
// says: 8
extern "C" __global__ void shift(int* x)
{
    __shared__ int tile[9][8];
    tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 8 + threadIdx.x];
    if (threadIdx.y == 0) tile[8][threadIdx.x] = 0;
    __syncthreads();
    x[threadIdx.y * 8 + threadIdx.x] = tile[threadIdx.y][threadIdx.x + 1];  // HERE
}
