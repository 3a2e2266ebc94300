// about: A header of the machine's own C++ library.
// kernel: fill
// grid: 1
// block: 32
// arg: int32[32] zeros
// expect: compile or unsupported
// says: iostream
#include <iostream>  // HERE
extern "C" __global__ void fill(int* y) { y[threadIdx.x] = 1; }
