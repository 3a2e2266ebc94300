// about: A value of 16 finds no bin among 16, and the atomic goes past the end of a global array.
// kernel: histogram
// grid: 1
// block: 32
// arg: int32[32] constant(16)
// arg: int32[16] zeros
// expect: out_of_bounds
// says: counts[16]
extern "C" __global__ void histogram(const int* x, int* counts)
{
    atomicAdd(&counts[x[threadIdx.x]], 1);  // HERE
}
