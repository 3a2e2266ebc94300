// about: A recursion that never ends.
// kernel: count
// grid: 1
// block: 1
// arg: int32[1] ones
// expect: stack_overflow
__device__ __noinline__ int down(int* x, int n)  // HERE
{  // HERE
    int kept[64];
    kept[n % 64] = x[0];  // HERE
    return down(x, n + 1) + kept[(n + 1) % 64] * 0 + kept[n % 64];  // HERE
}  // HERE

extern "C" __global__ void count(int* x) { x[0] = down(x, 0); }
