// about: The packed array has half as many bytes as there are codes; the index is that of the code.
// kernel: pack
// grid: 1
// block: 32
// arg: uint8[32] integers(4, 0, 16)
// arg: uint8[16] zeros
// expect: out_of_bounds
// says: packed[
extern "C" __global__ void pack(const unsigned char* codes, unsigned char* packed)
{
    int i = threadIdx.x;
    if (i % 2 == 0) packed[i] = codes[i] | codes[i + 1] << 4;  // HERE
}
