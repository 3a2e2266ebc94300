// about: A template is one index too long, in a loop that the compiler unrolls.
// kernel: sums
// grid: 1
// block: 4
// arg: int32[16] arange
// arg: int32[4] zeros
// expect: out_of_bounds
// says: x[16]
template <int N> __device__ int sum_of(const int* x)
{
    int sum = 0;
#pragma unroll
    for (int i = 0; i < N; ++i)
        sum += x[i];  // HERE
    return sum;
}

extern "C" __global__ void sums(const int* x, int* y) { y[threadIdx.x] = sum_of<5>(x + 4 * threadIdx.x); }
