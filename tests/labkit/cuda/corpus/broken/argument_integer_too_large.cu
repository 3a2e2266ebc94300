// about: A Python integer that an int cannot hold.
// kernel: fill
// grid: 1
// block: 8
// arg: float32[8] zeros
// arg: int 1099511627776
// expect: argument
// says: n
extern "C" __global__ void fill(float* y, int n)
{
    if (threadIdx.x < n) y[threadIdx.x] = 1.0f;
}
