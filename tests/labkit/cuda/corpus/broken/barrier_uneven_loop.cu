// about: Threads run different numbers of turns of a loop with a barrier inside.
// kernel: turns
// grid: 1
// block: 32
// arg: int32[40] arange
// arg: int32 40
// expect: barrier
extern "C" __global__ void turns(int* x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        x[i] += 1;
        __syncthreads();  // HERE
    }
}
