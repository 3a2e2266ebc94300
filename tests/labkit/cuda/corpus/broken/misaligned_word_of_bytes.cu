// about: Rows of 6 bytes are read by words of 4.
// kernel: load
// grid: 1
// block: 4
// arg: uint8[26] integers(35, 0, 256)
// arg: uint32[4] zeros
// expect: misaligned
extern "C" __global__ void load(const unsigned char* x, unsigned int* y)
{
    const unsigned char* row = x + 6 * threadIdx.x;
    y[threadIdx.x] = *(const unsigned int*)row;  // HERE
}
