// about: Bins in global memory are counted up without atomics.
// kernel: histogram
// grid: 1
// block: 64
// arg: int32[64] integers(19, 0, 4)
// arg: int32[4] zeros
// expect: race
// says: counts[
extern "C" __global__ void histogram(const int* x, int* counts)
{
    counts[x[threadIdx.x]] += 1;  // HERE
}
