// about: A shared array with one place for each of 32 threads; the block has 33.
// kernel: reverse
// grid: 1
// block: 33
// arg: int32[33] arange
// expect: out_of_bounds
// says: tile
extern "C" __global__ void reverse(int* x)
{
    __shared__ int tile[32];
    tile[threadIdx.x] = x[threadIdx.x];  // HERE
    __syncthreads();
    if (threadIdx.x < 32) x[threadIdx.x] = tile[31 - threadIdx.x];
}
