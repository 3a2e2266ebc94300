// about: A grid may have 65,535 blocks along y.
// kernel: fill
// grid: 1 65536
// block: 1
// arg: int32[1] zeros
// expect: launch
// says: 65535
extern "C" __global__ void fill(int* y) { if (blockIdx.y == 0) y[0] = 1; }
