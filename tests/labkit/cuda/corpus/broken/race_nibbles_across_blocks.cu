// about: A group of odd length: the last nibble of one block and the first of the next share a byte.
// kernel: pack
// grid: 2
// block: 1
// arg: uint8[30] integers(23, 1, 16)
// arg: uint8[15] zeros
// expect: race
// says: packed[7]
extern "C" __global__ void pack(const unsigned char* codes, unsigned char* packed)
{
    for (int i = 15 * blockIdx.x; i < 15 * (blockIdx.x + 1); ++i) {
        unsigned char kept = packed[i / 2];  // HERE
        packed[i / 2] = kept | codes[i] << 4 * (i % 2);  // HERE
    }
}
