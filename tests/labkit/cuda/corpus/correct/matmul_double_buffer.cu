// about: Two buffers in turn, one barrier per tile: the next tile is loaded while the last one is read.
// kernel: matmul
// grid: 1
// block: 8 8
// arg: float32[8,32] integers(22, -5, 5)
// arg: float32[32,8] integers(23, -5, 5)
// arg: float32[8,8] zeros
// equals: product = left @ right
extern "C" __global__ void matmul(const float* left, const float* right, float* product)
{
    __shared__ float a[2][8][8], b[2][8][8];
    int y = threadIdx.y, x = threadIdx.x;
    a[0][y][x] = left[y * 32 + x];
    b[0][y][x] = right[y * 8 + x];
    float sum = 0.0f;
    for (int tile = 0; tile < 4; ++tile) {
        __syncthreads();
        int now = tile & 1, next = now ^ 1;
        if (tile + 1 < 4) {
            a[next][y][x] = left[y * 32 + (tile + 1) * 8 + x];
            b[next][y][x] = right[((tile + 1) * 8 + y) * 8 + x];
        }
        for (int k = 0; k < 8; ++k) sum += a[now][y][k] * b[now][k][x];
    }
    product[y * 8 + x] = sum;
}
