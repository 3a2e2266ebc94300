// about: Tiles in shared memory, zeros beyond the ragged edges, two barriers in each turn of the loop.
// kernel: matmul
// grid: 2 2
// block: 16 16
// arg: float32[20,37] integers(18, -5, 5)
// arg: float32[37,25] integers(19, -5, 5)
// arg: float32[20,25] zeros
// arg: int32 20
// arg: int32 37
// arg: int32 25
// equals: product = left @ right
#define TILE 16
extern "C" __global__ void matmul(const float* left, const float* right, float* product, int rows, int inner, int columns)
{
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int ty = threadIdx.y, tx = threadIdx.x;
    int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int start = 0; start < inner; start += TILE) {
        a[ty][tx] = row < rows && start + tx < inner ? left[row * inner + start + tx] : 0.0f;
        b[ty][tx] = start + ty < inner && column < columns ? right[(start + ty) * columns + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) sum += a[ty][k] * b[k][tx];
        __syncthreads();
    }
    if (row < rows && column < columns) product[row * columns + column] = sum;
}
