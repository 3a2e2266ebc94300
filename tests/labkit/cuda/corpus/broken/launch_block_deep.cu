// about: A block may have 64 threads along z, not 65.
// kernel: fill
// grid: 1
// block: 1 1 65
// arg: int32[65] zeros
// expect: launch
// says: 64
extern "C" __global__ void fill(int* y) { y[threadIdx.z] = 1; }
