// about: Every thread merges its nibble into a byte that it shares, by a plain `|=`.
// kernel: pack
// grid: 1
// block: 64
// arg: uint8[64] integers(21, 1, 16)
// arg: uint8[32] zeros
// expect: race
// says: packed[
extern "C" __global__ void pack(const unsigned char* codes, unsigned char* packed)
{
    int i = threadIdx.x;
    packed[i / 2] |= codes[i] << 4 * (i % 2);  // HERE
}
