// about: A cast takes the const away, and the kernel writes what it promised to read.
// kernel: clear
// grid: 1
// block: 8
// arg: float32[8] normal(37)
// expect: read_only
extern "C" __global__ void clear(const float* x)
{
    ((float*)x)[threadIdx.x] = 0.0f;  // HERE
}
