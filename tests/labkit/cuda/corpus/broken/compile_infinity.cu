// about: INFINITY is a macro of a header that nobody included.
// kernel: fill
// grid: 1
// block: 32
// arg: float32[32] zeros
// expect: compile
// says: INFINITY
extern "C" __global__ void fill(float* y)
{
    y[threadIdx.x] = -INFINITY;  // HERE
}
