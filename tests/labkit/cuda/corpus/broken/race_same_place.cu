// about: Every thread writes a number of its own to one place.
// kernel: last
// grid: 1
// block: 32
// arg: int32[1] zeros
// expect: race
// says: y[0]
extern "C" __global__ void last(int* y)
{
    y[0] = threadIdx.x;  // HERE
}
