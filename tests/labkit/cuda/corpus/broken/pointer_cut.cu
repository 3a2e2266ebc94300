// about: An address goes through 32 bits and comes back as another.
// kernel: cut
// grid: 1
// block: 1
// arg: int32[1] zeros
// expect: bad_pointer
extern "C" __global__ void cut(int* y)
{
    unsigned int address = (unsigned int)(size_t)y;
    *(int*)(size_t)address = 1;  // HERE
}
