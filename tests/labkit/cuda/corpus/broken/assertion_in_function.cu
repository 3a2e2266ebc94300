// about: An assertion with a sentence, in a function.
// kernel: check
// grid: 2
// block: 4
// arg: int32[8] arange
// arg: int32[8] zeros
// expect: assertion
// says: the scale is positive
__device__ float inverse(int scale)
{
    assert(scale > 0 && "the scale is positive");  // HERE
    return 1.0f / scale;
}

extern "C" __global__ void check(const int* x, int* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = (int)inverse(x[i]);
}
