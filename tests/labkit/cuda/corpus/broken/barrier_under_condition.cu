// about: Half of the block waits at a barrier that the other half goes round.
// kernel: half
// grid: 1
// block: 64
// arg: int32[64] arange
// expect: barrier
extern "C" __global__ void half(int* x)
{
    if (threadIdx.x < 32) {
        x[threadIdx.x] += 1;
        __syncthreads();  // HERE
    }
    x[threadIdx.x] *= 2;
}
