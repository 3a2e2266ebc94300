// about: A block without threads.
// kernel: fill
// grid: 1
// block: 0
// arg: int32[1] zeros
// expect: launch
extern "C" __global__ void fill(int* y) { y[threadIdx.x] = 1; }
