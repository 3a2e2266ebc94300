// about: Inline PTX.
// kernel: lane
// grid: 1
// block: 32
// arg: uint32[32] zeros
// expect: unsupported
// says: asm
extern "C" __global__ void lane(unsigned int* y)
{
    unsigned int id;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(id));  // HERE
    y[threadIdx.x] = id;
}
