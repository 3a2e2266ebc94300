// about: A tiled product without the barrier after loading the tiles.
// kernel: matmul
// grid: 1
// block: 8 8
// arg: float32[8,16] normal(14)
// arg: float32[16,8] normal(15)
// arg: float32[8,8] zeros
// expect: race
extern "C" __global__ void matmul(const float* left, const float* right, float* product)
{
    __shared__ float a[8][8], b[8][8];
    int y = threadIdx.y, x = threadIdx.x;
    float sum = 0.0f;
    for (int start = 0; start < 16; start += 8) {
        a[y][x] = left[y * 16 + start + x];  // HERE
        b[y][x] = right[(start + y) * 8 + x];  // HERE
        for (int k = 0; k < 8; ++k)
            sum += a[y][k] * b[k][x];  // HERE
        __syncthreads();
    }
    product[y * 8 + x] = sum;
}
