// about: Each thread counts into a row of its own, so no atomics are needed.
// kernel: histogram
// grid: 1
// block: 32
// arg: uint8[300] integers(34, 0, 8)
// arg: int32[8] zeros
// arg: int32 300
// equals: counts = np.bincount(x, minlength=8).astype(np.int32)
extern "C" __global__ void histogram(const unsigned char* x, int* counts, int n)
{
    __shared__ unsigned short rows[32][8];
    for (int b = 0; b < 8; ++b) rows[threadIdx.x][b] = 0;
    for (int i = threadIdx.x; i < n; i += 32) rows[threadIdx.x][x[i]]++;
    __syncthreads();
    if (threadIdx.x < 8) {
        int sum = 0;
        for (int r = 0; r < 32; ++r) sum += rows[r][threadIdx.x];
        counts[threadIdx.x] = sum;
    }
}
