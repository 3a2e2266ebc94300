// about: A name that was never declared.
// kernel: fill
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: compile
// says: treadIdx
extern "C" __global__ void fill(int* y)
{
    y[treadIdx.x] = 1;  // HERE
}
