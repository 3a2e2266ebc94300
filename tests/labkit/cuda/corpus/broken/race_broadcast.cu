// about: Thread 0 makes the scale and everybody uses it, without waiting.
// kernel: scale
// grid: 1
// block: 64
// arg: float32[64] normal(25)
// expect: race
// says: step
extern "C" __global__ void scale(float* x)
{
    __shared__ float step;
    if (threadIdx.x == 0)
        step = x[0] / 6.0f;  // HERE
    x[threadIdx.x] = x[threadIdx.x] / step;  // HERE
}
