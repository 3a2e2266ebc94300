// about: One thread per element of the product on a two-dimensional grid with ragged edges.
// kernel: matmul
// grid: 3 2
// block: 8 8
// arg: float32[13,5] integers(16, -5, 5)
// arg: float32[5,19] integers(17, -5, 5)
// arg: float32[13,19] zeros
// arg: int32 13
// arg: int32 5
// arg: int32 19
// equals: product = left @ right
extern "C" __global__ void matmul(const float* left, const float* right, float* product, int rows, int inner, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    float sum = 0.0f;
    for (int k = 0; k < inner; ++k) sum += left[row * inner + k] * right[k * columns + column];
    product[row * columns + column] = sum;
}
