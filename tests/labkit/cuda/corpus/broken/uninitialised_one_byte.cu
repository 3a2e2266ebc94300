// about: Three of four bytes of a word are written, then the word is read.
// kernel: word
// grid: 1
// block: 1
// arg: uint32[1] zeros
// expect: uninitialised
// says: bytes
extern "C" __global__ void word(unsigned int* y)
{
    __shared__ __align__(4) unsigned char bytes[4];
    for (int i = 0; i < 3; ++i) bytes[i] = i;
    *y = *(unsigned int*)bytes;  // HERE
}
