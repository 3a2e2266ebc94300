// about: A Python float is passed as 8 bytes; the kernel takes 4.
// kernel: scale
// grid: 1
// block: 8
// arg: float32[8] ones
// arg: float 0.5
// expect: argument
// says: factor
// says: float32
extern "C" __global__ void scale(float* y, float factor)
{
    y[threadIdx.x] *= factor;
}
