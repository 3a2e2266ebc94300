// about: Written and read again by the neighbour, in global memory, inside one block.
// kernel: chain
// grid: 1
// block: 64
// arg: int32[64] arange
// arg: int32[64] zeros
// expect: race
// says: x[
extern "C" __global__ void chain(int* x, int* y)
{
    x[threadIdx.x] += 1;  // HERE
    y[threadIdx.x] = x[63 - threadIdx.x];  // HERE
}
