// about: The mask of n lanes, for n = 32.
// kernel: masks
// grid: 1
// block: 33
// arg: uint32[33] zeros
// expect: shift
// says: 32
extern "C" __global__ void masks(unsigned int* y)
{
    y[threadIdx.x] = (1u << threadIdx.x) - 1u;  // HERE
}
