// about: One buffer, with a barrier between reading and writing.
// kernel: inclusive_scan
// grid: 1
// block: 50
// arg: int32[50] integers(28, -100, 100)
// equals: x = np.cumsum(x, dtype=np.int32)
extern "C" __global__ void inclusive_scan(int* x)
{
    __shared__ int buffer[50];
    int t = threadIdx.x;
    buffer[t] = x[t];
    __syncthreads();
    for (int distance = 1; distance < blockDim.x; distance <<= 1) {
        int left = t >= distance ? buffer[t - distance] : 0;
        __syncthreads();
        buffer[t] += left;
        __syncthreads();
    }
    x[t] = buffer[t];
}
