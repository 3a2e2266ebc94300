// about: A grid-stride loop: any grid handles any length.
// kernel: saxpy
// grid: 3
// block: 32
// arg: float32[500] integers(1, -50, 50)
// arg: float32[500] integers(2, -50, 50)
// arg: float32 2.5
// arg: int64 500
// equals: y = y + factor * x
extern "C" __global__ void saxpy(const float* __restrict__ x, float* __restrict__ y, float factor, long long n)
{
    long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] += factor * x[i];
}
