// about: Hillis and Steele in one buffer without a barrier between reading and writing.
// kernel: scan
// grid: 1
// block: 64
// arg: int32[64] arange
// expect: race
// says: buffer
extern "C" __global__ void scan(int* x)
{
    __shared__ int buffer[64];
    int t = threadIdx.x;
    buffer[t] = x[t];
    __syncthreads();
    for (int distance = 1; distance < 64; distance *= 2) {
        if (t >= distance)
            buffer[t] += buffer[t - distance];  // HERE
        __syncthreads();
    }
    x[t] = buffer[t];
}
