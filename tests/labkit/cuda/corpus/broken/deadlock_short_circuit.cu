// about: `&&` decides for each lane whether the vote on its right is taken at all.
// kernel: vote
// grid: 1
// block: 32
// arg: int32[32] arange
// expect: deadlock or barrier
// says: __any_sync
extern "C" __global__ void vote(int* x)
{
    if (x[threadIdx.x] > 3 && __any_sync(0xffffffffu, x[threadIdx.x] > 30))  // HERE
        x[threadIdx.x] = 0;
    __syncthreads();  // HERE
}
