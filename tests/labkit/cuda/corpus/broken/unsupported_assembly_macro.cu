// about: Inline PTX by its other spelling, in a macro.
// kernel: lane
// grid: 1
// block: 32
// arg: uint32[32] zeros
// expect: unsupported
// says: asm
#define LANE(id) __asm__("mov.u32 %0, %%laneid;" : "=r"(id))  // HERE
extern "C" __global__ void lane(unsigned int* y)
{
    unsigned int id;
    LANE(id);  // HERE
    y[threadIdx.x] = id;
}
