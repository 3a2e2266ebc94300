// about: An atomic on a word that begins at an odd byte.
// kernel: count
// grid: 1
// block: 1
// arg: uint8[16] zeros
// expect: misaligned
extern "C" __global__ void count(unsigned char* y)
{
    atomicAdd((unsigned int*)(y + 1), 1u);  // HERE
}
