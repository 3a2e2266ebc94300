// about: Each thread stores at the mirror place what another still has to read.
// kernel: reverse
// grid: 1
// block: 64
// arg: int32[64] arange
// expect: race
// says: x[
extern "C" __global__ void reverse(int* x)
{
    int value = x[threadIdx.x];  // HERE
    x[63 - threadIdx.x] = value;  // HERE
}
