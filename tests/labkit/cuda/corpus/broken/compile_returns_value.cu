// about: A kernel returns nothing.
// kernel: fill
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: compile
// says: void
extern "C" __global__ int fill(int* y)  // HERE
{
    y[threadIdx.x] = 1;
    return 0;
}
