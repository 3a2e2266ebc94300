// about: No padding: the column is mixed with the row by exclusive or.
// kernel: transpose
// grid: 1
// block: 16 16
// arg: int32[16,16] arange
// arg: int32[16,16] zeros
// equals: y = x.T
extern "C" __global__ void transpose(const int* x, int* y)
{
    __shared__ int tile[16 * 16];
    int c = threadIdx.x, r = threadIdx.y;
    tile[r * 16 + (c ^ r)] = x[r * 16 + c];
    __syncthreads();
    y[r * 16 + c] = tile[c * 16 + (r ^ c)];
}
