// about: Sixteen nibbles do not fit in a word of 32 bits.
// kernel: pack
// grid: 1
// block: 1
// arg: uint8[16] integers(39, 0, 16)
// arg: uint32[1] zeros
// expect: shift
// says: 32
extern "C" __global__ void pack(const unsigned char* codes, unsigned int* word)
{
    unsigned int bits = 0;
    for (int i = 0; i < 16; ++i)
        bits |= (unsigned int)codes[i] << 4 * i;  // HERE
    *word = bits;
}
