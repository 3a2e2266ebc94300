// about: An array of the thread's own is written past its end.
// kernel: collect
// grid: 1
// block: 4
// arg: int32[4,10] arange
// arg: int32[4] zeros
// arg: int32 10
// expect: out_of_bounds
// says: 8
extern "C" __global__ void collect(const int* x, int* y, int n)
{
    int mine[8], sum = 0;
    for (int i = 0; i < n; ++i)
        mine[i] = x[threadIdx.x * 10 + i];  // HERE
    for (int i = 0; i < 8; ++i) sum += mine[i];
    y[threadIdx.x] = sum;
}
