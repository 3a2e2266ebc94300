// about: A recursion with an end, but too deep for the stack of a thread.
// kernel: sum
// grid: 1
// block: 1
// arg: int32[1] ones
// expect: stack_overflow
__device__ __noinline__ int sum_below(volatile int* x, int n)  // HERE
{  // HERE
    volatile int mine[32];  // HERE
    for (int i = 0; i < 32; ++i) mine[i] = n + i;  // HERE
    if (n == 0) return 0;
    return mine[n % 32] + sum_below(x, n - 1) + mine[0] + x[0];  // HERE
}  // HERE

extern "C" __global__ void sum(int* x) { x[0] = sum_below(x, 1000000); }
