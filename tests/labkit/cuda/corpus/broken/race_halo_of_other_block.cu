// about: A stencil in place reads across the border what the other block is writing.
// kernel: smooth
// grid: 2
// block: 32
// arg: int32[64] arange
// expect: race
// says: x[
extern "C" __global__ void smooth(int* x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int right = i + 1 < 64 ? x[i + 1] : 0;  // HERE
    __syncthreads();
    x[i] += right;  // HERE
}
