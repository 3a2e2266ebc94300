// about: Each branch has a barrier of its own: two barriers, not one.
// kernel: branches
// grid: 1
// block: 64
// arg: int32[64] arange
// expect: barrier
extern "C" __global__ void branches(int* x)
{
    if (threadIdx.x < 32) {
        x[threadIdx.x] += 1;
        __syncthreads();  // HERE
    } else {
        x[threadIdx.x] -= 1;
        __syncthreads();  // HERE
    }
}
