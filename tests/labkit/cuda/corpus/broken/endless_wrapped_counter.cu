// about: An unsigned counter is never below zero.
// kernel: fill
// grid: 1
// block: 1
// limit_s: 0.1
// orders: 0
// arg: int32[16] zeros
// expect: time_limit
extern "C" __global__ void fill(int* y)
{
    for (unsigned int i = 15; i >= 0; --i)
        y[i % 16] += 1;  // HERE
}
