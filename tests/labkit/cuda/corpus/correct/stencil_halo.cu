// about: A one-dimensional stencil of radius 3; the first threads load the halo, zeros beyond the ends.
// kernel: stencil
// grid: 4
// block: 32
// arg: int32[117] integers(43, -10, 10)
// arg: int32[117] zeros
// arg: int32 117
// equals: y = np.convolve(x, np.ones(7, np.int32), mode="same")
#define RADIUS 3
extern "C" __global__ void stencil(const int* x, int* y, int n)
{
    __shared__ int tile[32 + 2 * RADIUS];
    int i = blockIdx.x * 32 + threadIdx.x, t = threadIdx.x + RADIUS;
    tile[t] = i < n ? x[i] : 0;
    if (threadIdx.x < RADIUS) {
        tile[t - RADIUS] = i - RADIUS >= 0 ? x[i - RADIUS] : 0;
        tile[t + 32] = i + 32 < n ? x[i + 32] : 0;
    }
    __syncthreads();
    if (i >= n) return;
    int sum = 0;
    for (int d = -RADIUS; d <= RADIUS; ++d) sum += tile[t + d];
    y[i] = sum;
}
