// about: Bytes of a word through a union and through a pointer to unsigned char, in registers and in shared memory.
// kernel: swap_bytes
// grid: 1
// block: 32
// arg: uint32[32] integers(14, 0, 4294967295)
// arg: uint32[32] zeros
// equals: y = x.byteswap()
union Word {
    unsigned int value;
    unsigned char bytes[4];
};

extern "C" __global__ void swap_bytes(const unsigned int* x, unsigned int* y)
{
    __shared__ unsigned int words[32];
    Word word;
    word.value = x[threadIdx.x];
    unsigned char* bytes = (unsigned char*)&words[threadIdx.x];
    for (int i = 0; i < 4; ++i) bytes[i] = word.bytes[3 - i];
    Word again;
    again.value = words[threadIdx.x];
    y[threadIdx.x] = again.value;
}
