// about: asm, wmma and cooperative groups in a comment and in a string are nothing to refuse; the fault is the index.
// kernel: fill
// grid: 1
// block: 8
// arg: int32[8] zeros
// expect: out_of_bounds
// says: y[8]
// The following words are only words: asm("nop"), wmma::fragment, #include <cooperative_groups.h>, tex1Dfetch.
extern "C" __global__ void fill(int* y)
{
    const char* words = "asm volatile wmma cooperative_groups tex1Dfetch malloc";
    if (words[0] == 'a' && threadIdx.x == 7)
        y[threadIdx.x + 1] = 1;  // HERE
}
