// about: 32 × 33 threads: each side is allowed, the product is not.
// kernel: fill
// grid: 1
// block: 32 33
// arg: int32[33,32] zeros
// expect: launch
// says: 1056
extern "C" __global__ void fill(int* y) { y[threadIdx.y * 32 + threadIdx.x] = 1; }
