// about: An empty loop for ever.
// kernel: wait
// grid: 1
// block: 1
// limit_s: 0.1
// orders: 0
// arg: int32[1] zeros
// expect: time_limit
extern "C" __global__ void wait(int* y)
{
    while (true) { }  // HERE
    y[0] = 1;
}
