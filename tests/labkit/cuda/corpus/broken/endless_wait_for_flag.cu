// about: A thread waits for a flag that nobody sets.
// kernel: wait
// grid: 1
// block: 1
// limit_s: 0.1
// orders: 0
// arg: int32[1] zeros
// expect: time_limit
extern "C" __global__ void wait(volatile int* flag)
{
    while (*flag == 0) { }  // HERE
    *flag = 2;
}
