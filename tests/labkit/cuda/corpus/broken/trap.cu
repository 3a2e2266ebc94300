// about: A kernel stops itself.
// kernel: stop
// grid: 1
// block: 8
// arg: int32[8] arange
// expect: trap
extern "C" __global__ void stop(int* x)
{
    if (x[threadIdx.x] == 3)
        __trap();  // HERE
    x[threadIdx.x] = 0;
}
