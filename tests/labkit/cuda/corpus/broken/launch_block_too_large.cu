// about: 1,025 threads in a block; 1,024 are the most.
// kernel: fill
// grid: 1
// block: 1025
// arg: int32[1025] zeros
// expect: launch
// says: 1024
extern "C" __global__ void fill(int* y) { y[threadIdx.x] = 1; }
