// about: An int32 where the kernel takes 8 bytes.
// kernel: fill
// grid: 1
// block: 8
// arg: float32[8] zeros
// arg: int32 8
// expect: argument
// says: int64
extern "C" __global__ void fill(float* y, long long n)
{
    if (threadIdx.x < n) y[threadIdx.x] = 1.0f;
}
