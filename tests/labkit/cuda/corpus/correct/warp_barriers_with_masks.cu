// about: Each quarter of a warp passes values through shared memory behind warp barriers of its own mask.
// kernel: quarters
// grid: 1
// block: 64
// arg: int32[64] integers(78, -100, 100)
// equals: x = np.cumsum(x.reshape(8, 8), axis=1).reshape(64)
extern "C" __global__ void quarters(int* x)
{
    __shared__ int values[64];
    int t = threadIdx.x, lane = t % 8;
    unsigned int mask = 0xffu << (t % 32 - lane);
    values[t] = x[t];
    __syncwarp(mask);
    for (int distance = 1; distance < 8; distance *= 2) {
        int left = lane >= distance ? values[t - distance] : 0;
        __syncwarp(mask);
        values[t] += left;
        __syncwarp(mask);
    }
    x[t] = values[t];
}
