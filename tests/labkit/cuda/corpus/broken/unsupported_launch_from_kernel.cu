// about: A kernel that launches a kernel.
// kernel: outer
// grid: 1
// block: 1
// arg: int32[32] zeros
// expect: unsupported or compile
extern "C" __global__ void inner(int* y) { y[threadIdx.x] = 1; }
extern "C" __global__ void outer(int* y)
{
    inner<<<1, 32>>>(y);  // HERE
}
