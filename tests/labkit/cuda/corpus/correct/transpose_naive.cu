// about: Two dimensions, ragged edges, no shared memory.
// kernel: transpose
// grid: 3 2
// block: 16 8
// arg: float32[11,35] arange
// arg: float32[35,11] zeros
// arg: int32 11
// arg: int32 35
// equals: y = x.T
extern "C" __global__ void transpose(const float* x, float* y, int rows, int columns)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && c < columns) y[c * rows + r] = x[r * columns + c];
}
