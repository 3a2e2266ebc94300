// about: Inclusive scan with two buffers in turn.
// kernel: inclusive_scan
// grid: 2
// block: 64
// arg: int32[2,64] integers(27, -100, 100)
// arg: int32[2,64] zeros
// equals: y = np.cumsum(x, axis=1, dtype=np.int32)
extern "C" __global__ void inclusive_scan(const int* x, int* y)
{
    __shared__ int buffer[2][64];
    int t = threadIdx.x, now = 0;
    buffer[now][t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    for (int distance = 1; distance < 64; distance *= 2) {
        int next = 1 - now;
        buffer[next][t] = buffer[now][t] + (t >= distance ? buffer[now][t - distance] : 0);
        now = next;
        __syncthreads();
    }
    y[blockIdx.x * 64 + t] = buffer[now][t];
}
