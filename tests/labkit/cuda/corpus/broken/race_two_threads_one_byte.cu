// about: The thread of the low nibble stores the byte, the thread of the high nibble adds its own to it.
// kernel: pack
// grid: 1
// block: 32
// arg: uint8[32] integers(20, 1, 16)
// arg: uint8[16] zeros
// expect: race
// says: packed[
extern "C" __global__ void pack(const unsigned char* codes, unsigned char* packed)
{
    int i = threadIdx.x;
    if (i % 2 == 0)
        packed[i / 2] = codes[i];  // HERE
    else
        packed[i / 2] |= codes[i] << 4;  // HERE
}
