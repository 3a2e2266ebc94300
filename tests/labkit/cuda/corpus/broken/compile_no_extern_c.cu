// about: Without extern "C" the compiler gives the kernel another name.
// kernel: fill
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: compile
// says: extern "C"
__global__ void fill(int* y) { y[threadIdx.x] = 1; }
