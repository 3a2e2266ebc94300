// about: Length and factor are passed in the wrong order.
// kernel: scale
// grid: 1
// block: 8
// arg: float32[8] ones
// arg: float32 0.5
// arg: int32 8
// expect: argument
extern "C" __global__ void scale(float* y, int n, float factor)
{
    if (threadIdx.x < n) y[threadIdx.x] *= factor;
}
