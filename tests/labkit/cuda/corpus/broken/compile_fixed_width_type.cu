// about: uint8_t is a name of a header that nobody included.
// kernel: fill
// grid: 1
// block: 32
// arg: uint8[32] zeros
// expect: compile
// says: uint8_t
extern "C" __global__ void fill(uint8_t* y)  // HERE
{
    y[threadIdx.x] = 1;
}
