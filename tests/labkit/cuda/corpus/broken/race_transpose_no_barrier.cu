// about: Each thread reads from the tile what another wrote, with nothing between.
// kernel: transpose
// grid: 1
// block: 16 16
// arg: int32[16,16] arange
// arg: int32[16,16] zeros
// expect: race
// says: tile
extern "C" __global__ void transpose(const int* x, int* y)
{
    __shared__ int tile[16][17];
    tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 16 + threadIdx.x];  // HERE
    y[threadIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];  // HERE
}
