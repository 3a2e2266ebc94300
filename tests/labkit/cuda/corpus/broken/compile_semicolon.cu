// about: A semicolon is missing.
// kernel: fill
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: compile
extern "C" __global__ void fill(int* y)
{
    int i = threadIdx.x  // HERE
    y[i] = 1;  // HERE
}
