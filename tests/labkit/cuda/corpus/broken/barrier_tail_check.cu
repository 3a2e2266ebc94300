// about: The check for the ragged end goes round the barrier too.
// kernel: shift
// grid: 2
// block: 32
// arg: int32[40] arange
// arg: int32[40] zeros
// arg: int32 40
// expect: barrier
extern "C" __global__ void shift(const int* x, int* y, int n)
{
    __shared__ int tile[32];
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) {
        tile[threadIdx.x] = x[i];
        __syncthreads();  // HERE
        y[i] = tile[threadIdx.x ^ 1];
    }
}
