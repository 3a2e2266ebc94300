// about: A loop over a row goes one step too far; only the last row leaves the array.
// kernel: row_sum
// grid: 1
// block: 4
// arg: int32[4,10] arange
// arg: int32[4] zeros
// expect: out_of_bounds
// says: x[40]
extern "C" __global__ void row_sum(const int* x, int* total)
{
    int sum = 0;
    for (int c = 0; c <= 10; ++c)
        sum += x[threadIdx.x * 10 + c];  // HERE
    total[threadIdx.x] = sum;
}
