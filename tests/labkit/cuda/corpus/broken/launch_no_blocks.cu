// about: n // 256 blocks for n = 100: none.
// kernel: fill
// grid: 0
// block: 256
// arg: int32[100] zeros
// expect: launch
// says: 0
extern "C" __global__ void fill(int* y) { y[threadIdx.x] = 1; }
