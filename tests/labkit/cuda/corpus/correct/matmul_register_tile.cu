// about: Each thread holds a 2 × 2 piece of the product in registers.
// kernel: matmul
// grid: 2 2
// block: 8 8
// arg: float32[32,24] integers(20, -5, 5)
// arg: float32[24,32] integers(21, -5, 5)
// arg: float32[32,32] zeros
// equals: product = left @ right
constexpr int SIDE = 16, DEPTH = 8, WIDTH = 32, INNER = 24;

extern "C" __global__ __launch_bounds__(64) void matmul(const float* left, const float* right, float* product)
{
    __shared__ float a[DEPTH][SIDE + 1], b[DEPTH][SIDE];
    int t = threadIdx.y * 8 + threadIdx.x;
    float sum[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    for (int start = 0; start < INNER; start += DEPTH) {
        for (int i = t; i < SIDE * DEPTH; i += 64) {
            a[i % DEPTH][i / DEPTH] = left[(blockIdx.y * SIDE + i / DEPTH) * INNER + start + i % DEPTH];
            b[i / SIDE][i % SIDE] = right[(start + i / SIDE) * WIDTH + blockIdx.x * SIDE + i % SIDE];
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; ++k)
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) sum[i][j] += a[k][2 * threadIdx.y + i] * b[k][2 * threadIdx.x + j];
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            product[(blockIdx.y * SIDE + 2 * threadIdx.y + i) * WIDTH + blockIdx.x * SIDE + 2 * threadIdx.x + j] = sum[i][j];
}
