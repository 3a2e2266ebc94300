// about: The name that is asked for is not the kernel's.
// kernel: quantize
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: compile
// says: quantise
extern "C" __global__ void quantise(int* y) { y[threadIdx.x] = 1; }
