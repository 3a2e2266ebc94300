// about: Two buffers, but the barrier stands where only the first turn needs it.
// kernel: rotate
// grid: 1
// block: 64
// arg: int32[64] arange
// expect: race
// says: buffer
extern "C" __global__ void rotate(int* x)
{
    __shared__ int buffer[2][64];
    int t = threadIdx.x;
    buffer[0][t] = x[t];
    __syncthreads();
    for (int turn = 0; turn < 3; ++turn)
        buffer[1 - turn % 2][t] = buffer[turn % 2][(t + 1) % 64];  // HERE
    __syncthreads();
    x[t] = buffer[1][t];
}
