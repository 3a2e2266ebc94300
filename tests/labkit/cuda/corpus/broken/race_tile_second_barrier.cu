// about: A tiled product without the barrier before the next tiles overwrite the last.
// kernel: matmul
// grid: 1
// block: 8 8
// arg: float32[8,16] normal(16)
// arg: float32[16,8] normal(17)
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
        __syncthreads();
        for (int k = 0; k < 8; ++k)
            sum += a[y][k] * b[k][x];  // HERE
    }
    product[y * 8 + x] = sum;
}
